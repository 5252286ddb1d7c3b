"""Figures of a whole run."""

from __future__ import annotations

from reports.charts import Part
from reports.report_figures import run
from reports.result_files.goodput import (
    FailureFacts,
    IdealFacts,
    IntervalFacts,
    RunPlanFacts,
    SampleColumns,
)
from reports.result_files.parts import Three
from reports.words import english
from tests.reports.small_figures import only, partly


def test_every_run_is_in_one_bar() -> None:
    days = tuple(float(day) for day in range(21))
    samples = SampleColumns(days=days, goodput=days, failures=(0,) * 21, accelerator_hours=days)
    found = partly(
        RunPlanFacts,
        samples=samples,
        days=Three(p10=2.0, p50=10.0, p90=18.0),
        ideal=IdealFacts(days=9.0, accelerator_hours=1.0),
        replications=21,
    )
    drawn = only(run.days(found, english))
    # 20 bars of one day; day 20 is in the last one too.
    assert drawn.counts == (1,) * 19 + (2,)
    assert drawn.edges == days
    assert [(mark.label, mark.y) for mark in drawn.marks] == [
        ("p10", 2.0),
        ("p50", 10.0),
        ("p90", 18.0),
    ]


def test_lost_time_leaves_out_what_trains() -> None:
    found = partly(RunPlanFacts, wall_shares={"useful": 0.9, "restart": 0.1, "slow": 0.0})
    drawn = only(run.wall_time(found, english))
    (part,) = drawn.parts
    assert part == Part(label=part.label, values=(10.0,))


def test_intervals_are_in_minutes_from_the_shortest() -> None:
    tried = (
        IntervalFacts(name="Daly", steps=20, interval_s=1200.0, goodput=0.97),
        IntervalFacts(name="best", steps=10, interval_s=600.0, goodput=0.98),
    )
    failures = partly(FailureFacts, intervals=tried)
    drawn = only(run.intervals(partly(RunPlanFacts, failures=failures), english))
    (series,) = drawn.series
    assert (series.x, series.y, series.texts) == ((10.0, 20.0), (98.0, 97.0), ("best", "Daly"))
