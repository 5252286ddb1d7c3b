"""Replays whose end can be found with a pencil."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.hardware.accelerator import Dtype
from simulator.interchange.prices import recorded_seconds
from simulator.interchange.records import NodeKind
from simulator.interchange.replay import play
from simulator.interchange.result import covered, replay
from simulator.parallel.groups import Collective
from tests.fakes import NIC, PEAK, SCALE_UP, fake_profile
from tests.simulator.interchange.traces import compute, message, together, workload

REDUCE = Collective.ALL_REDUCE


def test_a_collective_waits_for_its_last_rank() -> None:
    early = (compute(0, 1.0), together(1, REDUCE, 8.0, 0, seconds=2.0), compute(2, 1.0, 1))
    late = (compute(0, 4.0), together(1, REDUCE, 8.0, 0, seconds=2.0), compute(2, 1.0, 1))
    played = play(workload(early, late), recorded_seconds)
    assert played.end == ((1.0, 6.0, 7.0), (4.0, 6.0, 7.0))


def test_an_accelerator_computes_one_thing_at_a_time_the_lower_number_first() -> None:
    nodes = (compute(7, 1.0), compute(3, 2.0), compute(5, 4.0))
    played = play(workload(nodes), recorded_seconds)
    assert played.start == ((6.0, 0.0, 2.0),)


def test_the_host_computes_beside_the_accelerator() -> None:
    nodes = (compute(0, 3.0), compute(1, 2.0, on_cpu=True))
    assert play(workload(nodes), recorded_seconds).step_time == 3.0


def test_a_communicator_does_one_collective_after_another_and_two_do_them_at_once() -> None:
    one = tuple(together(i, REDUCE, 8.0, seconds=1.0, group=1) for i in range(2))
    two = tuple(together(i, REDUCE, 8.0, seconds=1.0, group=1 + i) for i in range(2))
    groups = {1: (0, 1), 2: (0, 1)}
    ends = [
        play(workload(nodes, nodes, groups=groups), recorded_seconds).step_time
        for nodes in (one, two)
    ]
    assert ends == [2.0, 1.0]


def test_a_message_leaves_at_once_and_waits_for_a_late_receiver() -> None:
    sender = (message(0, NodeKind.SEND, 1, seconds=2.0),)
    receiver = (compute(0, 5.0), message(1, NodeKind.RECEIVE, 0, 0), compute(2, 1.0, 1))
    played = play(workload(sender, receiver), recorded_seconds)
    assert (played.end[0], played.end[1]) == ((2.0,), (5.0, 5.0, 6.0))


def test_a_message_on_request_leaves_when_both_are_there() -> None:
    sender = (message(0, NodeKind.SEND, 1, seconds=2.0, on_request=True),)
    receiver = (compute(0, 5.0), message(1, NodeKind.RECEIVE, 0, 0, on_request=True))
    played = play(workload(sender, receiver), recorded_seconds)
    assert (played.end[0], played.end[1]) == ((7.0,), (5.0, 7.0))


def test_a_receiver_that_is_early_waits() -> None:
    sender = (compute(0, 3.0), message(1, NodeKind.SEND, 1, 0, seconds=2.0))
    receiver = (message(0, NodeKind.RECEIVE, 0), compute(1, 1.0, 0))
    assert play(workload(sender, receiver), recorded_seconds).end[1] == (5.0, 6.0)


def test_ranks_that_wait_for_each_other_are_named() -> None:
    one = (together(0, REDUCE, 8.0, group=1), together(1, REDUCE, 8.0, 0, group=2))
    other = (together(0, REDUCE, 8.0, group=2), together(1, REDUCE, 8.0, 0, group=1))
    both = workload(one, other, groups={1: (0, 1), 2: (0, 1)})
    with pytest.raises(InputError, match="circle"):
        play(both, recorded_seconds)


def test_collectives_are_priced_by_the_machine() -> None:
    """16 GB over two ranks of one domain: 16 GB on the wire; over two domains the NIC decides."""
    nodes = (together(0, REDUCE, 16e9, group=1),)
    idle = ()
    near = workload(nodes, nodes, groups={1: (0, 1)})
    far = workload(nodes, *[idle] * 7, nodes, groups={1: (0, 8)})
    found = [replay(each, fake_profile()).step_time for each in (near, far)]
    assert found == [pytest.approx(16e9 / SCALE_UP), pytest.approx(16e9 / NIC)]


def test_an_all_gather_counts_what_a_rank_puts_in() -> None:
    """Each of 4 ranks puts in 1 GB and gets the 3 GB of the others."""
    nodes = (together(0, Collective.ALL_GATHER, 1e9),)
    found = replay(workload(*[nodes] * 4), fake_profile())
    assert found.step_time == pytest.approx(3e9 / SCALE_UP)


def test_compute_without_a_duration_takes_its_flop_at_the_peak_and_says_so() -> None:
    nodes = (compute(0, 0.0, flops=2 * PEAK), compute(1, 0.0, 0))
    found = replay(workload(nodes), fake_profile())
    assert found.step_time == pytest.approx(2.0)
    assert len(found.warnings) == 2


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(InputError, match="no peak"):
        replay(workload((compute(0, 1.0),)), fake_profile(), Dtype.FP8)


def test_ranks_compute_wait_and_communicate() -> None:
    early = (compute(0, 1.0), together(1, REDUCE, SCALE_UP, 0), compute(2, 1.0, 0))
    late = (compute(0, 4.0), together(1, REDUCE, SCALE_UP, 0))
    found = replay(workload(early, late), fake_profile())
    uses = [(rank.compute, rank.exposed, rank.idle) for rank in found.ranks]
    assert uses == [pytest.approx((2.0, 1.0, 2.0)), pytest.approx((4.0, 1.0, 0.0))]


def test_times_of_the_trace_are_compared_only_where_it_has_them() -> None:
    bare = (compute(0, 1.0), together(1, REDUCE, 8.0, 0))
    timed = (compute(0, 1.0), together(1, REDUCE, 8.0, 0, seconds=3.0))
    found = [replay(workload(each, each), fake_profile()).recorded for each in (bare, timed)]
    assert found == [None, 4.0]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=12))
def test_covered_counts_each_moment_once(spans: list[tuple[int, int]]) -> None:
    ends = [(float(start), float(start + length)) for start, length in spans]
    moments = {t for start, length in spans for t in range(start, start + length)}
    assert covered(ends) == len(moments)


@given(st.integers(1, 5), st.integers(1, 6))
def test_longer_compute_never_makes_a_step_shorter(factor: int, place: int) -> None:
    def step(longer: Mapping[int, int]) -> float:
        nodes = [
            tuple(
                node
                for i in range(3)
                for node in (
                    compute(
                        2 * i, float(longer.get(rank * 3 + i, 1)), *(() if i == 0 else (2 * i - 1,))
                    ),
                    together(2 * i + 1, REDUCE, 8.0, 2 * i, seconds=1.0),
                )
            )
            for rank in range(2)
        ]
        return play(workload(*nodes), recorded_seconds).step_time

    assert step({place - 1: factor}) == 6.0 + (factor - 1)
