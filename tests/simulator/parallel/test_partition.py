"""Layers over stages: the frameworks' rules, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError, Problem
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.partition import balanced, partition_layers
from simulator.workload.stack_choices import PartitionRule

FORGIVING = [rule for rule in PartitionRule if rule is not PartitionRule.EVEN]


def refusal(layout: ParallelLayout, layers: int, rule: PartitionRule) -> Problem:
    with pytest.raises(InputError) as caught:
        partition_layers(layout, layers, rule)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize("rule", FORGIVING)
@given(pp=st.integers(1, 12), vpp=st.integers(1, 3), layers=st.integers(1, 100))
def test_no_layer_is_lost_or_invented(rule: PartitionRule, pp: int, vpp: int, layers: int) -> None:
    layout = ParallelLayout(pp=pp, vpp=vpp)
    ends = 2 if rule is PartitionRule.EMBEDDING_COUNTS else 0
    if layers + ends < layout.virtual_stages:
        assert "cannot fill" in refusal(layout, layers, rule).rule
    else:
        split = partition_layers(layout, layers, rule)
        assert (len(split), sum(split)) == (pp * vpp, layers)


@given(layers=st.integers(1, 200), stages=st.integers(1, 40))
def test_balanced_stages_differ_by_one_layer_at_most(layers: int, stages: int) -> None:
    split = balanced(layers, stages)
    assert max(split) - min(split) <= 1


def test_even_stages_are_equal() -> None:
    split = partition_layers(ParallelLayout(pp=4, vpp=2), 96, PartitionRule.EVEN)
    assert split == (12,) * 8


def test_ends_have_one_layer_less_where_embedding_and_head_count_as_one() -> None:
    split = partition_layers(ParallelLayout(pp=4), 30, PartitionRule.EMBEDDING_COUNTS)
    assert split == (7, 8, 8, 7)


def test_given_layers_are_taken_as_they_are() -> None:
    layout = ParallelLayout(pp=3, layers_per_stage=(1, 0, 4))
    assert partition_layers(layout, 5, PartitionRule.EVEN) == (1, 0, 4)


@pytest.mark.parametrize("given_layers", [(2, 2), (2, 2, 2), (6, -2)])
def test_given_layers_must_be_one_number_a_stage_and_add_up(given_layers: tuple[int, ...]) -> None:
    layout = ParallelLayout(pp=2, layers_per_stage=given_layers)
    problem = refusal(layout, 5, PartitionRule.EVEN)
    assert (problem.key, problem.fix) == ("layout.layers_per_stage", "for example [3, 2]")


def test_uneven_layers_are_refused_with_both_ways_out() -> None:
    assert refusal(ParallelLayout(pp=4), 30, PartitionRule.EVEN) == Problem(
        key="layout.pp",
        found="pp 4 x vpp 1 = 4",
        rule="30 layers must divide by pp x vpp in this stack",
        fix="pp x vpp of 1, 2, 3, 5, 6, 10, 15, 30, or layers_per_stage = [8, 8, 7, 7]",
    )


def test_more_stages_than_layers_are_refused() -> None:
    problem = refusal(ParallelLayout(pp=4, vpp=2), 6, PartitionRule.BALANCED)
    assert (problem.rule, problem.fix) == (
        "6 layers cannot fill pp x vpp = 4 x 2 = 8 stages",
        "use pp x vpp of at most 6",
    )
