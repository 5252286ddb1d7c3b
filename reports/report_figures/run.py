"""Figures of a whole run: how long it may take, where its time goes, checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reports.charts import Chart, Figure, Histogram, Part, Rule, Series, Stacks
from reports.goodput_view import CAUSE_WORDS
from reports.quantities import seconds
from reports.report_figures.labels import named
from reports.result_files.goodput import RunPlanFacts
from reports.words import Words
from simulator.units import SECONDS_PER_DAY

_BARS = 20
_PERCENT = 100.0
_FEWEST = 2
"""Points that make a curve."""
_SECONDS_PER_MINUTE = 60.0


def days(run: RunPlanFacts, words: Words) -> Iterator[Figure]:
    """Yield in how many of the simulated runs training took how many days."""
    if run.samples is None or not run.samples.days:
        return
    counts, edges = np.histogram(run.samples.days, bins=_BARS)
    yield Histogram(
        name="run-days",
        title=words("Days of the whole run"),
        x_label=words("Days"),
        y_label=words("Simulated runs"),
        edges=tuple(map(float, edges)),
        counts=tuple(map(int, counts)),
        marks=tuple(
            Rule(label=label, y=value)
            for label, value in (
                ("p10", run.days.p10),
                ("p50", run.days.p50),
                ("p90", run.days.p90),
            )
        ),
        caption=words(
            "{count} runs, each with its own pace and failures; without failures it would take "
            "{ideal}.",
            count=run.replications,
            ideal=seconds(run.ideal.days * SECONDS_PER_DAY),
        ),
    )


def wall_time(run: RunPlanFacts, words: Words) -> Iterator[Figure]:
    """Yield what the wall time goes into besides steps that count."""
    lost = {
        cause: share * _PERCENT
        for cause, share in run.wall_shares.items()
        if cause != "useful" and share > 0
    }
    if not lost:
        return
    yield Stacks(
        name="lost-time",
        title=words("Time that does not train"),
        y_label=words("Percent of the wall time"),
        bars=(words("mean of all runs"),),
        parts=tuple(
            Part(label=named(CAUSE_WORDS, cause, words), values=(share,))
            for cause, share in lost.items()
        ),
        caption=words(
            "Goodput, the rest, is {goodput} %.",
            goodput=f"{run.wall_shares.get('useful', 0.0) * _PERCENT:.2f}",
        ),
    )


def intervals(run: RunPlanFacts, words: Words) -> Iterator[Figure]:
    """Yield the goodput at each interval between checkpoints that was tried."""
    if run.failures is None or len({i.interval_s for i in run.failures.intervals}) < _FEWEST:
        return
    tried = sorted(run.failures.intervals, key=lambda each: each.interval_s)
    yield Chart(
        name="checkpoint-interval",
        title=words("Goodput by the time between checkpoints"),
        x_label=words("Minutes between checkpoints"),
        y_label=words("Goodput, %"),
        series=(
            Series(
                label=words("tried intervals"),
                group="intervals",
                line=False,
                x=tuple(each.interval_s / _SECONDS_PER_MINUTE for each in tried),
                y=tuple(each.goodput * _PERCENT for each in tried),
                texts=tuple(each.name for each in tried),
            ),
        ),
        log_x=True,
        caption=words("Young's and Daly's intervals are closed forms; the best one was searched."),
    )
