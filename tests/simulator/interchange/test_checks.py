"""What is wrong with traces, all of it at once."""

from __future__ import annotations

import pytest

from simulator.errors import InputError
from simulator.interchange.checks import check_workload
from simulator.interchange.records import NodeKind, Workload
from simulator.parallel.groups import Collective
from tests.simulator.interchange.traces import compute, message, together, workload

GATHER, REDUCE = Collective.ALL_GATHER, Collective.ALL_REDUCE


def problems(found: Workload) -> str:
    with pytest.raises(InputError) as caught:
        check_workload(found)
    return str(caught.value)


def test_nodes_in_a_circle_are_named() -> None:
    text = problems(workload((compute(0, 1.0, 1), compute(1, 1.0, 0))))
    assert "circle" in text
    assert "rank 0" in text


def test_nodes_may_stand_in_any_order() -> None:
    check_workload(workload((compute(1, 1.0, 0), compute(0, 1.0))))


def test_every_unknown_dependency_and_group_is_told() -> None:
    text = problems(
        workload(
            (compute(0, 1.0, 9), together(1, REDUCE, 8.0, group=5)),
            (together(0, REDUCE, 8.0, group=1),),
            groups={1: (0,)},
        )
    )
    for part in ("node 0 (compute 0).deps", "found 9", "found 5", "a group of rank 1"):
        assert part in text


def test_ranks_that_do_different_collectives_are_told_apart() -> None:
    one, other = (together(0, REDUCE, 8.0),), (together(0, GATHER, 8.0),)
    text = problems(workload(one, other))
    assert "rank 0 all_reduce, rank 1 all_gather" in text


def test_a_rank_that_leaves_out_a_collective_is_found() -> None:
    text = problems(workload((together(0, REDUCE, 8.0),), ()))
    assert "rank 1 nothing" in text


def test_messages_without_another_end_are_found() -> None:
    text = problems(workload((message(0, NodeKind.SEND, 1, tag=4),), ()))
    assert "from rank 0 to rank 1, tag 4" in text


def test_a_rank_cannot_send_to_itself_or_to_nobody() -> None:
    text = problems(workload((message(0, NodeKind.SEND, 0), message(1, NodeKind.SEND, 7))))
    assert text.count("must be another rank") == 2


def test_of_many_problems_the_first_are_shown_and_the_others_counted() -> None:
    nodes = tuple(compute(number, 1.0, 1000) for number in range(50))
    assert "and 30 more" in problems(workload(nodes))
