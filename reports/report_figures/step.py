"""Figures of one simulated step."""

from __future__ import annotations

from collections.abc import Iterator

from reports.charts import (
    Box,
    Cable,
    Chart,
    Diagram,
    Figure,
    Part,
    Rule,
    Series,
    Stacks,
    Timeline,
)
from reports.quantities import number, percent, seconds
from reports.report_figures.labels import CATEGORIES, MEMORY_PARTS, PASSES, named
from reports.result_files.step import MemoryCurve, OperatorFacts, PictureFacts, StepFile
from reports.words import Words
from simulator.units import GB, GIB, TERA

_MOST_OPERATORS = 24
"""Operators of a roofline: those that take longest."""
_MOST_CURVES = 8
"""Stages whose memory over time is drawn; between them it changes little by little."""
_DECADE = 10.0


def breakdown(step: StepFile, words: Words) -> Iterator[Figure]:
    """Yield the seconds of every stage by category; categories that take nothing are left out."""
    stages = step.breakdowns or (step.breakdown,)
    parts = tuple(
        Part(label=named(CATEGORIES, kind, words), values=values)
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
    texts = []
    for place in compute:
        name, batch = named(PASSES, bars.names[bars.name[place]], words), bars.micro_batch[place]
        texts.append(name if batch is None else f"{name} {batch}")
    yield Timeline(
        name="pipeline-timeline",
        title=words("Pipeline timeline of one step"),
        rows=tuple(words("stage {stage}", stage=each) for each in range(1 + max(bars.stage))),
        kinds=tuple(named(PASSES, name, words) for name in bars.names),
        row=tuple(bars.stage[place] for place in compute),
        kind=tuple(bars.name[place] for place in compute),
        start=tuple(bars.start_s[place] for place in compute),
        stop=tuple(bars.stop_s[place] for place in compute),
        texts=tuple(texts),
        x_label=words("Seconds from the start of the step"),
        caption=words(
            "One rank of each stage; where nothing is drawn it waits: {bubble} of bubble on "
            "stage {stage}.",
            bubble=seconds(step.step.bubble_s),
            stage=step.breakdown.stage,
        ),
    )


def memory_parts(step: StepFile, words: Words) -> Iterator[Figure]:
    """Yield the reserved memory of every stage at its peak, against the accelerator's."""
    stages = step.memory.stages
    parts = tuple(
        Part(label=named(MEMORY_PARTS, kind, words), values=values)
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
        limit=Rule(
            label=words("capacity {size} GiB", size=number(step.memory.capacity_bytes / GIB)),
            y=step.memory.capacity_bytes / GIB,
        ),
        caption=words("All that the device loses to the rank, with what no tensor takes."),
    )


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
    capacity = step.memory.capacity_bytes / GIB
    yield Chart(
        name="memory-over-time",
        title=words("Memory over the step"),
        x_label=words("Seconds from the start of the step"),
        y_label=words("Allocated, GiB"),
        series=series,
        rules=(Rule(label=words("capacity {size} GiB", size=number(capacity)), y=capacity),),
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


def roofline(step: StepFile, words: Words) -> Iterator[Figure]:
    """Yield the operators with FLOP against what the accelerator could do at most."""
    peaks = step.peaks
    shown = [use for use in step.operators if use.flops > 0 and use.bytes > 0 and use.seconds > 0]
    if peaks is None or not shown:
        return
    shown = sorted(shown, key=lambda use: -use.seconds)[:_MOST_OPERATORS]
    bandwidth = peaks.memory_bandwidth_bytes_per_second
    # In a mixed cluster the step's own peak is a mean; this is that of the busiest stage's machine.
    peak = peaks.matmul_flops_per_second.get(
        step.job.precision, step.step.dense_peak_flops_per_second
    )
    ridge = peak / bandwidth
    low = min(ridge, *(use.flops / use.bytes for use in shown)) / _DECADE
    high = max(ridge, *(use.flops / use.bytes for use in shown)) * _DECADE
    roof = Series(
        label=words("peak of {precision}", precision=step.job.precision),
        group="roof",
        line=True,
        x=(low, ridge, high),
        y=(low * bandwidth / TERA, peak / TERA, peak / TERA),
    )
    yield Chart(
        name="roofline",
        title=words("Roofline: the operators that take longest"),
        x_label=words("FLOP per byte of device memory"),
        y_label=words("TFLOP/s"),
        series=(roof, *_operators(shown, words)),
        log_x=True,
        log_y=True,
        caption=words(
            "Of one rank of stage {stage}; the closer to the roof, the less is left to gain. "
            "Operators without matrix products are not drawn.",
            stage=step.breakdown.stage,
        ),
    )


def _operators(shown: list[OperatorFacts], words: Words) -> Iterator[Series]:
    for kind in CATEGORIES:
        uses = [use for use in shown if use.category == kind]
        if uses:
            yield Series(
                label=named(CATEGORIES, kind, words),
                group=kind,
                line=False,
                x=tuple(use.flops / use.bytes for use in uses),
                y=tuple(use.flops / use.seconds / TERA for use in uses),
                texts=tuple(f"{use.phase} {use.name}, {seconds(use.seconds)}" for use in uses),
            )


def network(step: StepFile, words: Words) -> Iterator[Figure]:
    """Yield the pictures of the network with what its links carried."""
    for place, picture in enumerate(step.network.pictures):
        yield Diagram(
            name=f"network-{place}" if place else "network",
            title=words("Network: {title}", title=picture.title),
            boxes=tuple(Box(label=b.label, kind=b.kind, x=b.x, y=b.y) for b in picture.boxes),
            cables=tuple(_cables(picture)),
            unit=words("utilisation"),
            caption=words(
                "Each line is coloured by the fullest link in it, over the whole step; grey: not "
                "counted."
            ),
        )


def _cables(picture: PictureFacts) -> Iterator[Cable]:
    for line in picture.lines:
        used = "" if line.utilisation is None else f", {percent(line.utilisation)}"
        one, other = picture.boxes[line.one].label, picture.boxes[line.other].label
        rate = number(line.capacity_bytes_per_second / GB, 3)
        yield Cable(
            one=line.one,
            other=line.other,
            used=line.utilisation,
            text=f"{one} - {other}: {line.cables} x, {rate} GB/s{used}",
        )
