"""GOAL schedules: every message arrives, and carries what the collective needs."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.collectives.select import CollectiveCosts
from simulator.errors import InputError
from simulator.interchange import goal
from simulator.interchange.goal import GoalWriter
from simulator.interchange.goal_rounds import Round, rounds_of_members
from simulator.interchange.records import Workload
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ParallelLayout
from tests.fakes import fake_profile
from tests.simulator.interchange.traces import compute, together, traced, workload

COLLECTIVES = (
    Collective.ALL_REDUCE,
    Collective.ALL_GATHER,
    Collective.REDUCE_SCATTER,
    Collective.ALL_TO_ALL,
    Collective.BROADCAST,
    Collective.REDUCE,
)
RECURSIVE = ("recursive_doubling", "recursive_halving")
_LINE = re.compile(
    r"num_ranks \d+|rank \d+ \{|\}||l\d+ requires l\d+"
    r"|l\d+: (calc \d+ cpu \d|send \d+b to \d+ tag \d+ cpu \d|recv \d+b from \d+ tag \d+ cpu \d)"
)


def writer(found: Workload) -> GoalWriter:
    return GoalWriter(found, CollectiveCosts(fake_profile(), apart=True), 8)


def test_a_small_schedule_by_hand() -> None:
    nodes = (compute(0, 1e-6), together(1, Collective.ALL_REDUCE, 100.0, 0))
    assert writer(workload(nodes, nodes)).text().splitlines()[:14] == [
        "num_ranks 2",
        "",
        "rank 0 {",
        "l1: calc 1000 cpu 0",
        "l2: send 50b to 1 tag 0 cpu 1",
        "l2 requires l1",
        "l3: recv 50b from 1 tag 0 cpu 1",
        "l3 requires l1",
        "l4: send 50b to 1 tag 0 cpu 1",
        "l4 requires l2",
        "l4 requires l3",
        "l5: recv 50b from 1 tag 0 cpu 1",
        "l5 requires l2",
        "l5 requires l3",
    ]


@pytest.mark.parametrize(
    "layout", [ParallelLayout(tp=2, pp=2, dp=2, zero_stage=1), ParallelLayout(dp=4)], ids=str
)
def test_a_schedule_keeps_to_the_grammar_and_every_message_has_two_ends(
    layout: ParallelLayout,
) -> None:
    text = writer(traced(layout).workload()).text()
    assert all(_LINE.fullmatch(line) for line in text.splitlines())
    ends: Counter[tuple[int, int, str, str]] = Counter()
    rank = -1
    for line in text.splitlines():
        if found := re.match(r"rank (\d+)", line):
            rank = int(found[1])
        elif found := re.match(r"l\d+: send (\d+)b to (\d+) tag (\d+)", line):
            ends[rank, int(found[2]), found[1], found[3]] += 1
        elif found := re.match(r"l\d+: recv (\d+)b from (\d+) tag (\d+)", line):
            ends[int(found[2]), rank, found[1], found[3]] -= 1
    assert ends
    assert not any(ends.values())


def test_labels_are_defined_before_they_are_required() -> None:
    text = writer(traced(ParallelLayout(pp=2, dp=2)).workload()).text()
    for part in text.split("rank ")[1:]:
        defined = set()
        for line in part.splitlines():
            if found := re.match(r"(l\d+):", line):
                defined.add(found[1])
            elif found := re.match(r"(l\d+) requires (l\d+)", line):
                assert set(found.groups()) <= defined


@given(st.sampled_from(COLLECTIVES), st.integers(2, 9), st.sampled_from(["ring", *RECURSIVE]))
def test_rounds_of_all_members_fit_together(
    collective: Collective, members: int, algorithm: str
) -> None:
    sent: Counter[tuple[int, int, float]] = Counter()
    for member, rounds in enumerate(rounds_of_members(collective, algorithm, members)):
        for each in rounds:
            sent.update((member, other, size) for other, size in each.sends)
            sent.subtract((other, member, size) for other, size in each.receives)
    assert not any(sent.values())


@given(st.sampled_from(COLLECTIVES), st.integers(2, 9), st.sampled_from(["ring", *RECURSIVE]))
def test_what_each_member_needs_reaches_it(
    collective: Collective, members: int, algorithm: str
) -> None:
    """Whatever a member knows when a round begins goes with its message."""
    knows = delivered(rounds_of_members(collective, algorithm, members))
    match collective:
        case Collective.BROADCAST:
            assert all(0 in known for known in knows)
        case Collective.REDUCE:
            assert knows[0] == set(range(members))
        case _:
            assert all(known == set(range(members)) for known in knows)


def delivered(rounds: Sequence[Sequence[Round]]) -> list[set[int]]:
    """Return whose data each member has after its rounds; all of them must come to their end."""
    members = range(len(rounds))
    knows, mail = (
        [{member} for member in members],
        defaultdict[tuple[int, int], list[set[int]]](list),
    )
    at, sent = [0] * len(rounds), [False] * len(rounds)
    for _ in range(sum(map(len, rounds)) + 1):
        for m in members:
            if at[m] == len(rounds[m]):
                continue
            each = rounds[m][at[m]]
            if not sent[m]:
                for other, _ in each.sends:
                    mail[m, other].append(set(knows[m]))
            sent[m] = True
            if all(mail[other, m] for other, _ in each.receives):
                knows[m] |= set().union(*(mail[other, m].pop(0) for other, _ in each.receives))
                at[m], sent[m] = at[m] + 1, False
    assert at == list(map(len, rounds))
    return knows


@pytest.mark.parametrize(
    ("collective", "wire"),
    [
        (Collective.ALL_REDUCE, 2 * 3 / 4 * 16.0),
        (Collective.ALL_GATHER, 3 / 4 * 16.0),
        (Collective.REDUCE_SCATTER, 3 / 4 * 16.0),
        (Collective.ALL_TO_ALL, 3 / 4 * 16.0),
    ],
)
def test_a_member_sends_the_wire_bytes_of_nccl_tests(collective: Collective, wire: float) -> None:
    rounds = rounds_of_members(collective, "ring", 4)[1]
    assert sum(16.0 * size for each in rounds for _, size in each.sends) == wire


def test_recursive_doubling_takes_log_rounds_of_the_whole_buffer() -> None:
    rounds = rounds_of_members(Collective.ALL_REDUCE, "recursive_doubling", 8)[5]
    assert rounds == tuple(Round(((m, 1.0),), ((m, 1.0),)) for m in (4, 7, 1))


def test_too_many_operations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goal, "OPERATIONS_LIMIT", 3)
    nodes = (compute(0, 1e-6), together(1, Collective.ALL_REDUCE, 100.0, 0))
    with pytest.raises(InputError, match="at most 3 operations"):
        writer(workload(nodes, nodes)).text()


def test_an_algorithm_without_messages_of_its_own_is_told() -> None:
    nodes = (together(0, Collective.BROADCAST, 100.0),)
    found = writer(workload(*[nodes] * 4))
    found.text()
    assert found.notes == ("broadcast by chain is written as the messages of another algorithm",)
