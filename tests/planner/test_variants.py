"""The jobs and clusters of a search: all combinations, each a scenario of its own."""

from __future__ import annotations

from typing import Any

import pytest

from planner import plan
from planner.feasible import layout_key
from planner.pools import pool_of
from planner.selection import select
from planner.variants import MAX_VARIANTS, OWN, Varied, variants
from simulator.aims import Objective
from simulator.errors import InputError
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import Recompute
from simulator.scenario import Scenario, SearchFile
from simulator.topology.network_file import NetworkFile
from simulator.workload.job import Recipe, TrainingJob
from tests.planner.scenarios import gpt, scenario

_FEW: dict[str, Any] = {"tp": (1, 2), "pp": (1, 2), "micro_batch_size": (1, 2), "zero_stage": (1,)}


def given(job: TrainingJob | None = None, **search: Any) -> Scenario:
    """Return a small scenario on two nodes with few layouts."""
    job = job or TrainingJob(global_batch_size=32, seq_length=1024)
    return scenario(gpt(4, 1024), nodes=2, job=job, search=SearchFile(**_FEW, **search))


def with_network(plain: Scenario) -> Scenario:
    """Return a scenario with the network that its profile has."""
    cluster = plain.file.cluster.model_copy(update={"network": NetworkFile()})
    file = plain.file.model_copy(update={"cluster": cluster})
    return plain.model_copy(update={"file": file})


def test_without_outer_lists_the_scenario_is_the_only_variant() -> None:
    plain = given()
    (only,) = variants(plain)
    assert (only.varied, only.scenario) == (OWN, plain)


def test_every_combination_is_a_scenario_once() -> None:
    found = variants(given(nodes=(2, 1), global_batch_size=(64, 32)))
    assert [each.varied for each in found] == [
        Varied(nodes=nodes, global_batch_size=batch) for nodes in (1, 2) for batch in (32, 64)
    ]
    assert [each.number for each in found] == [0, 1, 2, 3]
    sizes = [(v.forecaster.world_size, v.forecaster.job.global_batch_size) for v in found]
    assert sizes == [(8, 32), (8, 64), (16, 32), (16, 64)]


def test_what_an_own_precision_says_of_itself_is_not_said_of_another() -> None:
    job = TrainingJob(
        global_batch_size=32,
        seq_length=1024,
        precision=Dtype.FP8,
        recipe=Recipe.BLOCKWISE,
        fp8_parameters=True,
    )
    with pytest.raises(InputError) as error:
        variants(given(job, precision=(Dtype.FP8, Dtype.BF16)))
    # The machine has no constants for fp8; bf16 has nothing to complain about.
    assert ["(in fp8)" in problem.rule for problem in error.value.problems] == [True]


def test_the_best_over_nodes_is_the_best_of_their_plans() -> None:
    both = plan(given(nodes=(1, 2), top=3))
    alone = [plan(given(nodes=(count,), top=3)).layouts[0] for count in (1, 2)]
    best = min(alone, key=lambda entry: entry.step_time)
    first = both.layouts[0]
    assert (first.layout, first.step_time) == (best.layout, best.step_time)
    assert first.varied == Varied(nodes=2)


def test_the_best_over_orders_of_ranks_is_the_best_of_their_plans() -> None:
    both = plan(with_network(given(rank_order=("cyclic", "block"), top=3)))
    alone = [
        plan(with_network(given(rank_order=(order,), top=3))).layouts[0]
        for order in ("block", "cyclic")
    ]
    assert both.layouts[0].step_time == min(entry.step_time for entry in alone)


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ({"nodes": ()}, "search.nodes: must have at least one entry"),
        ({"rank_order": ("block",)}, "the scenario describes none"),
        ({"precision": (Dtype.FP16,)}, "no constants for this precision"),
        ({"nodes": tuple(range(1, MAX_VARIANTS + 2))}, "at most 256 jobs and clusters"),
    ],
)
def test_lists_that_cannot_be_are_refused(search: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        variants(given(**search))


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InputError) as error:
        variants(given(nodes=(), rank_order=("block",)))
    assert len(error.value.problems) == 2


def test_the_best_of_all_variants_are_those_of_a_full_evaluation() -> None:
    table = given(nodes=(1, 2), global_batch_size=(16, 32), recompute=(Recompute.NONE,))
    pools = tuple(map(pool_of, variants(table)))
    everything = sorted(
        (cast.step_time(layout) / pool.variant.scenario.file.job.tokens_per_step, number, key)
        for number, pool in enumerate(pools)
        for cast in [pool.variant.forecaster]
        for layout in pool.feasible.fitting
        for key in [layout_key(layout)]
    )
    found = select(pools, Objective.STEP_TIME, 9)
    assert [(each.value, each.number, each.key) for each in found.best] == everything[:9]
    assert found.estimated < len(everything)
