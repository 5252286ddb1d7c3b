"""Objectives: their values by hand, their bounds, and the best by them against all layouts."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import pytest

from planner import plan
from planner.objectives import Measure
from planner.pareto import covers, pareto_front
from planner.pools import pool_of
from planner.selection import Pool, candidate, select
from planner.variants import variants
from simulator.aims import LayoutChoice, Objective
from simulator.errors import InputError
from simulator.parallel.layout import ParallelLayout, Recompute
from simulator.run_file import RunFile
from simulator.scenario import Scenario, SearchFile
from simulator.workload.job import TrainingJob
from tests.planner.scenarios import gpt, machine, scenario


def small(**search: Any) -> Scenario:
    """Return a job of 1,024 sequences in steps of 16 on 4 or 8 accelerators, at 2 an hour."""
    table = {
        "micro_batch_size": (1, 2),
        "vpp": (1,),
        "pp": (1, 2),
        "zero_stage": (1,),
        "tp": (1, 2),
        "sequence_parallel": (True,),
        "recompute": (Recompute.NONE, Recompute.FULL),
        "top": 4,
        **search,
    }
    job = TrainingJob(global_batch_size=16, seq_length=1024, tokens=2**20)
    profile = machine(memory="4 GiB", price=2.0, nic_gbps=10)
    return scenario(gpt(4, 512), job=job, profile=profile, search=SearchFile(**table))


def pools_of(given_scenario: Scenario) -> list[Pool]:
    """Return the layouts of every variant of a scenario."""
    return [pool_of(variant) for variant in variants(given_scenario)]


@cache
def evaluated(
    nodes: tuple[int, ...] | None, max_days: float | None
) -> tuple[list[Pool], list[tuple[Pool, ParallelLayout, float]]]:
    """Return all layouts that fit of up to four variants, and the step times within the limit."""
    pools = pools_of(small(nodes=nodes, global_batch_size=(8, 16), max_days=max_days))
    timed = [
        (pool, layout, pool.variant.forecaster.step_time(layout))
        for pool in pools
        for layout in pool.feasible.fitting
    ]
    return pools, [each for each in timed if each[2] <= each[0].measure.longest]


@pytest.mark.parametrize("objective", Objective)
@pytest.mark.parametrize(("nodes", "max_days"), [(None, None), ((1, 2), None), (None, 2.0e-4)])
def test_the_best_by_any_objective_are_those_of_a_full_evaluation(
    objective: Objective, nodes: tuple[int, ...] | None, max_days: float | None
) -> None:
    pools, everything = evaluated(nodes, max_days)
    ranked = sorted(
        candidate(pool, objective, layout, seconds) for pool, layout, seconds in everything
    )
    found = select(pools, objective, 4).best
    assert [each[:4] for each in found] == [each[:4] for each in ranked[:4]]


@pytest.mark.parametrize("pair", [*combinations(Objective, 2)])
@pytest.mark.parametrize("nodes", [None, (1, 2)])
def test_a_front_has_every_layout_that_nothing_covers_and_no_other(
    pair: tuple[Objective, Objective], nodes: tuple[int, ...] | None
) -> None:
    pools, everything = evaluated(nodes, None)
    values = {
        tuple(pool.measure.estimate(objective, layout, seconds) for objective in pair)
        for pool, layout, seconds in everything
    }
    bare = {a for a in values if not any(covers(b, a) and b != a for b in values)}
    front = [point.values for point in pareto_front(pools, pair)[0]]
    assert front == sorted(bare)


def test_energy_is_never_below_its_bound() -> None:
    (pool,) = pools_of(small())
    for layout in pool.feasible.fitting:
        seconds = pool.variant.forecaster.step_time(layout)
        energy = pool.measure.estimate(Objective.ENERGY, layout, seconds)
        assert 0.5 * energy < pool.measure.bound(Objective.ENERGY, layout, seconds) <= energy


def test_days_and_cost_of_a_step_time_by_hand() -> None:
    # 2**20 tokens in steps of 16 x 1,024 are 64 steps; at 1,350 s a day; 8 x 24 hours at 2.
    (variant,) = variants(small())
    measure = Measure(variant=variant)
    assert (measure.days(1350.0), measure.cost(1350.0)) == (1.0, 384.0)


def test_the_price_of_a_run_takes_the_place_of_the_profiles() -> None:
    given_scenario = small()
    file = given_scenario.file.model_copy(update={"run": RunFile(price=5.0)})
    (variant,) = variants(given_scenario.model_copy(update={"file": file}))
    assert Measure(variant=variant).cost(1350.0) == 960.0


def test_limits_leave_layouts_out_and_say_so_where_none_is_left() -> None:
    days = [entry.days for entry in plan(small(top=20)).layouts]
    middle = sorted(filter(None, days))[len(days) // 2]
    kept = [entry.days for entry in plan(small(top=20, max_days=middle)).layouts]
    assert kept == [each for each in days if each is not None and each <= middle]
    nothing = plan(small(max_days=1e-9))
    assert not nothing.layouts
    assert nothing.beyond.endswith("above search.max_days = 1e-09")


def test_fewest_accelerators_within_a_time_are_found() -> None:
    found = plan(small(nodes=(1, 2, 4), objective=Objective.DAYS, top=1))
    days = found.layouts[0].days
    assert days is not None
    few = plan(
        small(nodes=(1, 2, 4), objective=Objective.ACCELERATORS, max_days=2 * days, top=1)
    ).layouts[0]
    every = plan(small(nodes=(1, 2, 4), top=100, simulate=1)).layouts
    enough = [each.accelerators for each in every if each.days and each.days <= 2 * days]
    assert few.accelerators == min(enough)


@pytest.mark.parametrize(
    ("search", "tokens", "price", "keys"),
    [
        ({"objective": Objective.COST}, 2**20, None, ["search.objective"]),
        ({"pareto": (Objective.DAYS, Objective.COST)}, None, None, ["search.pareto"] * 2),
        ({"max_days": 3.0, "max_cost": 1.0}, None, 2.0, ["search.max_days", "search.max_cost"]),
        ({"pareto": (Objective.COST, Objective.COST)}, 2**20, 2.0, ["search.pareto"]),
        (
            {"choice": LayoutChoice.ROBUST, "objective": Objective.MEMORY},
            None,
            2.0,
            ["search.choice"],
        ),
    ],
)
def test_what_an_objective_lacks_is_named(
    search: dict[str, Any], tokens: int | None, price: float | None, keys: list[str]
) -> None:
    job = TrainingJob(global_batch_size=16, seq_length=1024, tokens=tokens)
    table = SearchFile(**search)
    with pytest.raises(InputError) as caught:
        plan(scenario(gpt(4, 512), job=job, profile=machine(price=price), search=table))
    assert [problem.key for problem in caught.value.problems] == keys


def test_the_least_memory_comes_first_where_it_is_the_objective() -> None:
    (pool,) = pools_of(small())
    peaks = map(pool.variant.forecaster.peak_memory, pool.feasible.fitting)
    best = plan(small(objective=Objective.MEMORY)).layouts[0]
    assert best.peak_memory == min(peaks)
    assert isinstance(best.layout, ParallelLayout)
