"""The map of layouts says of every tp and pp what an exhaustive look at it says."""

from __future__ import annotations

import json

import planner
from planner.feasible import divide_by_memory
from planner.space import enumerate_layouts
from planner.tables import to_json
from simulator.api import Forecaster
from simulator.parallel.checks import Reason
from simulator.scenario import SearchFile
from tests.planner.scenarios import gpt, machine
from tests.planner.scenarios import scenario as small_scenario
from tests.planner.test_mixed import two_generations


def test_each_cell_holds_its_fastest_layout_and_counts_the_refused_ones() -> None:
    scenario = small_scenario(gpt(), nodes=1, profile=machine(memory="3 GiB"))
    found = planner.plan(scenario, mapped=True)
    forecaster, space = Forecaster.of(scenario), enumerate_layouts(scenario)
    fitting = divide_by_memory(forecaster, space, found.memory_limit, 1).fitting
    assert found.cells is not None
    assert found.rejected[Reason.MEMORY] > 0
    for cell in found.cells:
        here = [each for each in fitting if (each.tp, each.pp) == (cell.tp, cell.pp)]
        times = [forecaster.step_time(layout) for layout in here]
        assert (cell.best.step_time if cell.best else None) == min(times, default=None)
        assert cell.considered == len(here) + sum(cell.reasons.values())
    assert sum(cell.considered for cell in found.cells) == found.searched.considered
    best = min(cell.best.step_time for cell in found.cells if cell.best)
    assert best == found.layouts[0].estimate


def test_reasons_of_all_cells_are_those_of_the_plan() -> None:
    found = planner.plan(small_scenario(gpt(), nodes=1), mapped=True)
    assert found.cells is not None
    total: dict[Reason, int] = {}
    for cell in found.cells:
        for reason, count in cell.reasons.items():
            total[reason] = total.get(reason, 0) + count
    assert total == {reason: count for reason, count in found.rejected.items() if count}


def test_a_plan_has_a_map_only_where_it_is_asked_for() -> None:
    found = planner.plan(small_scenario(gpt(), nodes=1))
    assert json.loads(to_json(found))["map"] is None


def test_cells_of_a_mixed_cluster_count_its_uneven_layouts_too() -> None:
    found = planner.plan(two_generations(model=gpt(12, 4096), memory="6 GiB"), mapped=True)
    assert found.cells is not None
    assert any(entry.layout.layers_per_stage for entry in found.layouts)
    memory = [cell.reasons.get(Reason.MEMORY, 0) for cell in found.cells]
    assert 0 < sum(memory) == found.rejected[Reason.MEMORY]
    assert sum(cell.considered for cell in found.cells) == found.searched.considered


def test_a_search_that_is_cut_short_says_what_it_leaves_open() -> None:
    whole = planner.plan(small_scenario(gpt(), nodes=1), mapped=True)
    search = SearchFile(max_estimates=1)
    cut = planner.plan(small_scenario(gpt(), nodes=1, search=search), mapped=True)
    assert whole.cells is not None
    assert cut.cells is not None
    for cell, short in zip(whole.cells, cut.cells, strict=True):
        if cell.best is None or short.best is None:
            assert cell.best is short.best
            continue
        assert cell.best.least_open is None
        found = short.best.step_time, short.best.least_open or short.best.step_time
        assert min(found) <= cell.best.step_time <= short.best.step_time
    assert any(cell.best and cell.best.least_open for cell in cut.cells)


def test_progress_counts_the_cells_and_ends_at_its_total() -> None:
    seen: list[tuple[int, int]] = []
    given = small_scenario(gpt(), nodes=1)
    planner.plan(given, progress=lambda done, total: seen.append((done, total)), mapped=True)
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]
