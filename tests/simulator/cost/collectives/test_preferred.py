"""Algorithms that a scenario names: taken where they serve, refused where they cannot."""

from __future__ import annotations

import pytest

from simulator.cost.collectives.preferred import algorithm_problems
from simulator.cost.collectives.select import CollectiveCosts
from simulator.parallel.groups import Collective, GroupShape
from tests.simulator.cost.collectives.machines import CONSTANTS, machine

NODE = GroupShape(size=4, per_domain=4)
FOUR_NODES = GroupShape(size=32, per_domain=8)


def taken(group: GroupShape, named: dict[str, str], profile: dict[str, str]) -> str:
    constants = CONSTANTS.model_copy(update={"algorithms": profile})
    costs = CollectiveCosts(machine(constants=constants), algorithms=named)
    return costs.plan(Collective.ALL_REDUCE, 1e9, group).algorithm


def test_the_named_algorithm_is_taken_before_that_of_the_profile() -> None:
    assert taken(FOUR_NODES, {"all_reduce": "sharp"}, {"all_reduce": "ring"}) == "sharp"


def test_groups_that_it_does_not_serve_choose_as_if_it_was_not_named() -> None:
    found = [
        taken(NODE, {"all_reduce": "tree"}, profile)
        for profile in ({}, {"all_reduce": "parameter_server"})
    ]
    assert found == ["ring", "parameter_server"]


def test_other_collectives_are_left_alone() -> None:
    costs = CollectiveCosts(machine(), algorithms={"all_reduce": "sharp"})
    assert costs.plan(Collective.ALL_GATHER, 1e9, FOUR_NODES).algorithm == "ring"


def test_what_a_work_asks_for_comes_first() -> None:
    costs = CollectiveCosts(machine(), algorithms={"all_reduce": "sharp"})
    plan = costs.plan(Collective.ALL_REDUCE, 1e9, FOUR_NODES, algorithm="hierarchical")
    assert plan.algorithm == "hierarchical"


@pytest.mark.parametrize(
    ("collective", "algorithm", "rule", "fix"),
    [
        ("allreduce", "ring", "is no collective", "did you mean 'all_reduce'?"),
        ("all_reduce", "rign", "is not a collective algorithm", "did you mean 'ring'?"),
        ("alltoall", "ring", "does not do alltoall", "one of: pairwise, two_step"),
        ("all_reduce", "nvls", "serves no group on round", "one of: ring, tree, hierarchical"),
    ],
)
def test_what_cannot_be_taken_is_refused(
    collective: str, algorithm: str, rule: str, fix: str
) -> None:
    no_switch = machine(in_network_reduction=False)
    (problem,) = algorithm_problems(
        {collective: algorithm}, no_switch, where="run.toml", key="network.algorithms"
    )
    assert (problem.where, problem.key) == ("run.toml", f"network.algorithms.{collective}")
    assert problem.rule == rule
    assert problem.fix.startswith(fix)


def test_all_that_is_wrong_is_said_at_once() -> None:
    wrong = {"all_reduce": "pairwise", "alltoall": "ring", "all_gather": "ring"}
    found = algorithm_problems(wrong, machine(), where="run.toml", key="algorithms")
    assert [problem.key for problem in found] == ["algorithms.all_reduce", "algorithms.alltoall"]
