"""Figures of a plan, from results made by hand."""

from __future__ import annotations

from math import exp
from typing import Any

import pytest

from reports.charts import Cell, Swing
from reports.report_figures import plan
from reports.result_files.explain import (
    ChangedStep,
    ExplainFile,
    SensitivityFacts,
    WhatIfFacts,
)
from reports.result_files.plan import (
    DrawnFacts,
    FrontFacts,
    FrontPoint,
    LayoutMapFacts,
    MapBest,
    MapCell,
    PlanFile,
    PlannedFacts,
)
from reports.words import english
from simulator.units import GIB
from tests.reports.small_figures import only, partly


def _planned(rank: int, step: float, **breakdown: float) -> PlannedFacts:
    return partly(
        PlannedFacts,
        rank=rank,
        name=f"tp{rank}",
        step_time_s=step,
        low=0.9 * step,
        high=1.2 * step,
        breakdown_s=breakdown,
    )


def test_a_cell_is_the_best_step_or_why_there_is_none() -> None:
    best = MapBest(
        layout={}, name="tp2", step_time_s=2.0, low_s=1.0, high_s=3.0, peak_memory_bytes=40.0 * GIB
    )
    memory, heads = "does not fit in memory", "attention heads do not divide by tp"
    cells = (
        MapCell(tp=1, pp=1, considered=9, best=None, reasons={heads: 8, memory: 1}),
        MapCell(tp=2, pp=1, considered=4, best=best),
        MapCell(tp=3, pp=1, considered=4, best=None, reasons={heads: 4}),
    )
    found = partly(PlanFile, map=LayoutMapFacts(cells=cells))
    drawn = only(plan.layout_map(found, english))
    assert drawn.cells == (
        (
            Cell(value=None, sign="X", text=f"{heads}: 8; {memory}: 1"),
            Cell(value=2.0, text="tp2: 2.000 s, 40.00 GiB"),
            Cell(value=None, sign="H", text=f"{heads}: 4"),
        ),
    )
    assert drawn.signs == (("X", memory), ("H", heads))


def test_layouts_stand_at_their_ranks_with_their_intervals() -> None:
    found = partly(PlanFile, layouts=(_planned(1, 10.0), _planned(2, 20.0)))
    drawn = only(plan.top_layouts(found, english))
    (series,) = drawn.series
    assert drawn.x_names == ("1", "2")
    assert (series.y, series.low, series.high) == ((10.0, 20.0), (9.0, 18.0), (12.0, 24.0))


def test_the_best_layouts_are_broken_down_side_by_side() -> None:
    layouts = (_planned(1, 3.0, gemm=3.0), _planned(2, 4.0, gemm=3.0, bubble=1.0))
    drawn = only(plan.best_two(partly(PlanFile, layouts=layouts), english))
    values = {part.label: part.values for part in drawn.parts}
    assert values == {"matrix products": (3.0, 3.0), "pipeline bubble": (0.0, 1.0)}


def test_a_front_is_in_the_units_of_its_axes() -> None:
    point = FrontPoint(
        values=(80.0 * GIB, 7.2e9),
        layout={},
        name="tp2",
        step_time_s=1.0,
        accelerators=8,
        peak_memory_bytes=80.0 * GIB,
    )
    facts = FrontFacts(objectives=("memory", "energy"), layouts=(point,))
    drawn = plan.front_chart(facts, "USD", english)
    assert (drawn.series[1].x, drawn.series[1].y) == ((80.0,), (2.0,))
    assert (drawn.x_label, drawn.y_label) == ("Peak memory, GiB", "Energy, MWh")


def _explained(**parts: Any) -> ExplainFile:
    best = partly(PlanFile, layouts=(_planned(1, 10.0),))
    return partly(ExplainFile, plan=best, **parts)


def test_the_change_that_moves_most_is_on_top_also_if_it_slows_down() -> None:
    changes = tuple(
        WhatIfFacts(
            name=name,
            same_layout=ChangedStep(speedup=same, name="tp1"),
            best_layout=ChangedStep(speedup=best, name="tp2"),
        )
        for name, same, best in (("small", 1.1, 1.2), ("slow", 0.5, 0.6), ("refused", None, None))
    )
    drawn = only(plan.tornado(_explained(what_if=changes), english))
    assert drawn.swings == (
        Swing(label="slow", low=0.5, high=0.6, text="tp2"),
        Swing(label="small", low=1.1, high=1.2, text="tp2"),
    )


def test_sources_of_error_move_the_step_from_the_forecast() -> None:
    source = SensitivityFacts(source="matrix products", low_s=9.5, high_s=10.6)
    drawn = only(plan.sensitivities(_explained(sensitivities=(source,)), english))
    assert drawn.centre == 10.0
    assert drawn.swings == (Swing(label="matrix products", low=9.5, high=10.6),)


def test_a_deviation_is_one_of_the_logarithm_of_a_factor() -> None:
    sources = {"known": 0.0, "matrix products": 0.2, "network latency": 0.4}
    facts = DrawnFacts(draws=100, seed=1, compared=2, sources=sources)
    drawn = only(plan.uncertainty(partly(PlanFile, drawn=facts), english))
    ends = {each.label: (each.low, each.high) for each in drawn.swings}
    assert ends == {
        "network latency": pytest.approx((exp(-0.4), exp(0.4))),
        "matrix products": pytest.approx((exp(-0.2), exp(0.2))),
    }
