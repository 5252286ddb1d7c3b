"""A search that is cut short: the best so far, and a bound of what was left open."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from planner import plan
from planner.budget import Budget, proved_gap
from planner.division import fits_of
from planner.feasible import layout_key
from planner.pareto import pareto_front
from planner.pools import pool_of
from planner.search import fastest
from planner.space import enumerate_layouts
from planner.variants import variants
from simulator.aims import Objective
from simulator.api import Forecaster
from simulator.parallel.layout import Recompute
from simulator.scenario import Scenario, SearchFile
from tests.planner.scenarios import gpt, scenario

_TOP = 8


def small(**search: Any) -> Scenario:
    """Return 8 accelerators and a model whose layouts differ little."""
    table = {
        "zero_stage": (1,),
        "sequence_parallel": (True,),
        "recompute": (Recompute.NONE,),
        "micro_batch_size": (1, 2),
        "top": _TOP,
        **search,
    }
    return scenario(gpt(8, 512), search=SearchFile(**table))


@pytest.mark.parametrize("estimates", [1, 3, 9, 1000])
def test_what_was_left_open_is_no_better_than_its_bound(estimates: int) -> None:
    cast = Forecaster.of(small())
    layouts = enumerate_layouts(small()).layouts
    found = fastest(cast, fits_of(cast, layouts), _TOP, budget=Budget(estimates=estimates))
    everything = sorted((cast.step_time(layout), layout_key(layout)) for layout in layouts)
    if found.least_open is None:
        assert [(each.seconds, each.key) for each in found.best] == everything[:_TOP]
        return
    assert found.estimated == estimates
    known = {each.key for each in found.best}
    assert min(time for time, key in everything if key not in known) >= found.least_open
    gap = proved_gap(found.best[0].seconds, found.least_open)
    assert found.best[0].seconds * (1 - gap) <= everything[0][0]


def test_more_estimates_leave_no_larger_gap() -> None:
    gaps = [plan(small(max_estimates=most)).searched.gap for most in (1, 4, 1000)]
    assert gaps[2] is None
    assert gaps[0] is not None
    assert gaps[1] is not None
    assert gaps[0] >= gaps[1]


def test_a_plan_that_was_cut_short_says_so() -> None:
    answer = plan(small(max_estimates=1))
    assert (answer.searched.estimated, len(answer.layouts)) == (1, 1)
    assert any("cut short after 1 exact estimate" in warning for warning in answer.warnings)


def test_time_that_is_up_cuts_a_search_short() -> None:
    clock = count().__next__
    budget = Budget(seconds=2, clock=clock)  # read at 0 s, then once a look
    assert [budget.spent for _ in range(3)] == [False, True, True]


def test_at_least_one_layout_is_found_in_no_time() -> None:
    assert len(plan(small(time_limit=0.0)).layouts) == 1


def test_a_budget_is_shared_by_all_jobs_and_clusters() -> None:
    answer = plan(small(max_estimates=4, global_batch_size=(16, 32)))
    assert answer.searched.estimated <= 5  # at least one of each
    assert answer.searched.gap is not None


@pytest.mark.parametrize("search", [{"time_limit": 3600.0}, {"max_estimates": 10**6}])
def test_a_limit_that_is_not_reached_changes_nothing(search: dict[str, Any]) -> None:
    free, limited = plan(small()), plan(small(**search))
    assert (limited.layouts, limited.searched) == (free.layouts, free.searched)


@pytest.mark.parametrize("estimates", [1, 3, 10**6])
def test_a_front_that_was_cut_short_counts_what_could_be_on_it(estimates: int) -> None:
    pools = [pool_of(variant) for variant in variants(small(memory_fraction=0.9))]
    pair = (Objective.STEP_TIME, Objective.MEMORY)
    whole, _ = pareto_front(pools, pair)
    found, left_open = pareto_front(pools, pair, Budget(estimates=estimates))
    known = {point.values for point in found}
    assert len({point.values for point in whole} - known) <= left_open
    assert (left_open == 0) == (estimates == 10**6)


def test_a_plan_says_that_its_front_was_cut_short() -> None:
    given = small(max_estimates=1, pareto=(Objective.STEP_TIME, Objective.MEMORY))
    answer = plan(given)
    assert answer.front is not None
    assert len(answer.front.layouts) == 1
    assert any("Pareto front was cut short" in warning for warning in answer.warnings)
