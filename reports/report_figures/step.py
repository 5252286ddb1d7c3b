"""Where the time of one simulated step goes: by category, and over time."""

from __future__ import annotations

from collections.abc import Iterator

from reports.charts import Figure, Part, Stacks, Timeline
from reports.quantities import seconds
from reports.report_figures.labels import CATEGORIES, PASSES, named, tone_of
from reports.result_files.step import StepFile
from reports.words import Words
from simulator.results import Category

_WAITS = (Category.BUBBLE, Category.PIPELINE_COMM, Category.DATA_COMM)
"""What a stage waits for between its passes; other communication makes the passes longer."""


def breakdown(step: StepFile, words: Words) -> Iterator[Figure]:
    """Yield the seconds of every stage by category; categories that take nothing are left out."""
    stages = step.breakdowns or (step.breakdown,)
    parts = tuple(
        Part(label=named(CATEGORIES, kind, words), values=values, tone=tone_of(CATEGORIES, kind))
        for kind in CATEGORIES
        for values in [tuple(each.seconds.get(kind, 0.0) for each in stages)]
        if any(abs(value) > 0 for value in values)
    )
    yield Stacks(
        name="step-breakdown",
        title=words("Where the step goes, by pipeline stage"),
        y_label=words("Seconds of a step"),
        bars=tuple(words("stage {stage}", stage=each.stage) for each in stages),
        parts=parts,
        caption=words(
            "Each bar is one rank of a stage and adds up to the step; stage {stage} works longest.",
            stage=step.breakdown.stage,
        ),
    )


def timeline(step: StepFile, words: Words) -> Iterator[Figure]:
    """Yield the passes of every stage over time; gaps are time in which a stage waits."""
    bars = step.timeline
    if bars is None or not bars.stage:
        return
    compute = [
        place for place, stream in enumerate(bars.stream) if bars.streams[stream] == "compute"
    ]
    names = [named(PASSES, bars.names[bars.name[place]], words) for place in compute]
    labels = ["" if (batch := bars.micro_batch[place]) is None else str(batch) for place in compute]
    yield Timeline(
        name="pipeline-timeline",
        title=words("Pipeline timeline of one step"),
        rows=tuple(words("stage {stage}", stage=each) for each in range(1 + max(bars.stage))),
        kinds=tuple(named(PASSES, name, words) for name in bars.names),
        tones=tuple(tone_of(PASSES, name) for name in bars.names),
        row=tuple(bars.stage[place] for place in compute),
        kind=tuple(bars.name[place] for place in compute),
        start=tuple(bars.start_s[place] for place in compute),
        stop=tuple(bars.stop_s[place] for place in compute),
        texts=tuple(f"{name} {batch}".rstrip() for name, batch in zip(names, labels, strict=True)),
        labels=tuple(labels),
        idle=words("waits"),
        x_label=words("Seconds from the start of the step"),
        caption=_waits(step, words),
    )


def _waits(step: StepFile, words: Words) -> str:
    """Return what the gaps of the busiest stage are, largest first."""
    waits = [(kind, step.breakdown.seconds.get(kind, 0.0)) for kind in _WAITS]
    known = sorted((wait for wait in waits if wait[1] > 0), key=lambda wait: -wait[1])
    if not known:
        return words("One rank of each stage; where nothing is drawn it waits.")
    return words(
        "One rank of each stage; where nothing is drawn it waits. On stage {stage}: {waits}.",
        stage=step.breakdown.stage,
        waits=", ".join(
            f"{named(CATEGORIES, kind, words)} {seconds(took)}" for kind, took in known
        ),
    )
