"""Operators against what the accelerator could do at most."""

from __future__ import annotations

from collections.abc import Iterator

from reports.charts import Chart, Figure, Series
from reports.quantities import seconds
from reports.report_figures.labels import CATEGORIES, named
from reports.result_files.step import OperatorFacts, StepFile
from reports.words import Words
from simulator.units import TERA

_MOST_OPERATORS = 24
"""Operators of a roofline: those that take longest."""
_DECADE = 10.0


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
