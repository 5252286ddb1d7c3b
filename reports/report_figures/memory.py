"""The memory of a step: what it is made of at its peak, and what it is over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reports.charts import Chart, Figure, Limit, Part, Rule, Series, Stacks
from reports.quantities import number
from reports.report_figures.labels import MEMORY_PARTS, named, tone_of
from reports.result_files.step import MemoryCurve, StepFile
from reports.words import Words
from simulator.units import GIB

_MOST_CURVES = 8
"""Stages whose memory over time is drawn; between them it changes little by little."""


def memory_parts(step: StepFile, words: Words) -> Iterator[Figure]:
    """Yield the reserved memory of every stage at its peak, against the accelerator's."""
    stages = step.memory.stages
    parts = tuple(
        Part(
            label=named(MEMORY_PARTS, kind, words), values=values, tone=tone_of(MEMORY_PARTS, kind)
        )
        for kind in MEMORY_PARTS
        for values in [tuple(getattr(stage, kind) / GIB for stage in stages)]
        if any(value > 0 for value in values)
    )
    yield Stacks(
        name="memory-parts",
        title=words("Memory of one rank at its peak"),
        y_label="GiB",
        bars=tuple(words("stage {stage}", stage=stage.stage) for stage in stages),
        parts=parts,
        limit=_limit(step, words),
        caption=words("All that the device loses to the rank, with what no tensor takes."),
    )


def _limit(step: StepFile, words: Words) -> Limit:
    """Return the capacity of every stage's accelerators: a mixed cluster has several."""
    sizes = [_capacity(step, stage.stage) for stage in step.memory.stages]
    return Limit(label=_capacity_words(sizes, words), values=tuple(sizes))


def _capacity(step: StepFile, stage: int) -> float:
    """Return the GiB of one accelerator of a stage."""
    of_stage = step.memory.stage_capacity_bytes[stage : stage + 1]
    return (of_stage[0] if of_stage else step.memory.capacity_bytes) / GIB


def _capacity_words(sizes: Iterable[float], words: Words) -> str:
    texts = (number(size) for size in sorted(set(sizes), reverse=True))
    return words("capacity {size} GiB", size=" / ".join(texts))


def memory_over_time(step: StepFile, words: Words) -> Iterator[Figure]:
    """Yield what tensors take over the step, of every stage."""
    if not step.memory_curves:
        return
    end, shown = step.step.step_time_s, _shown_curves(step)
    series = tuple(
        Series(
            label=words("stage {stage}", stage=curve.stage),
            group=str(curve.stage),
            line=True,
            steps=True,
            x=(*curve.time_s, end),
            y=tuple(value / GIB for value in (*curve.allocated_bytes, curve.allocated_bytes[-1])),
        )
        for curve in shown
    )
    sizes = sorted({_capacity(step, curve.stage) for curve in shown}, reverse=True)
    yield Chart(
        name="memory-over-time",
        title=words("Memory over the step"),
        x_label=words("Seconds from the start of the step"),
        y_label=words("Allocated, GiB"),
        series=series,
        rules=tuple(Rule(label=_capacity_words([size], words), y=size) for size in sizes),
        caption=words(
            "What tensors take, as max_memory_allocated counts, of {shown} of {all} stages; "
            "fragmentation, the CUDA context and NCCL come on top.",
            shown=len(shown),
            all=len(step.memory_curves),
        ),
    )


def _shown_curves(step: StepFile) -> list[MemoryCurve]:
    """Return the curves of at most `_MOST_CURVES` stages: the fullest, and some from end to end."""
    curves = step.memory_curves
    if len(curves) <= _MOST_CURVES:
        return list(curves)
    fullest = max(range(len(curves)), key=lambda place: max(curves[place].allocated_bytes))
    steps = _MOST_CURVES - 2
    places = {fullest, *(round(i * (len(curves) - 1) / steps) for i in range(steps + 1))}
    return [curves[place] for place in sorted(places)]
