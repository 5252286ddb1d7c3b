"""Collectives over gloo ranks, each a process of this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibrate.batches import World
from calibrate.points import CollectivePoint, GroupKind, Timing
from calibrate.records import Record
from simulator.parallel.groups import Collective
from tests.calibrate.gloo_ranks import on_ranks

pytest.importorskip("torch")

OPERATIONS = [kind for kind in Collective if kind is not Collective.HOST_COPY]


def _point(kind: Collective, ranks: int, size: float = 12288, **more: Any) -> CollectivePoint:
    given = {"collective": kind, "ranks": ranks, "nodes": 1, "bytes": float(size)}
    return CollectivePoint(**{**given, **more})


def test_every_collective_is_correct_and_all_ranks_agree_on_its_time(tmp_path: Path) -> None:
    first, *others = on_ranks(3, _all_operations, tmp_path)
    assert all(other == first for other in others)
    assert all(seconds > 0 and len(by_rank) == 3 for seconds, by_rank in first)


def _all_operations(context: Any) -> list[tuple[float, tuple[float, ...]]]:
    from calibrate.measure_collectives import measure_collective

    points = [_point(kind, 3) for kind in OPERATIONS]
    points += [_point(Collective.ALL_GATHER, 3, 96, dtype="bfloat16")]
    points += [_point(kind, 3, timing=Timing.ISOLATED) for kind in OPERATIONS[:2]]
    outcomes = [measure_collective(point, context) for point in points]
    return [(outcome.seconds, outcome.by_rank) for outcome in outcomes]


def test_ranks_outside_the_groups_look_on_and_report_no_time(tmp_path: Path) -> None:
    found = on_ranks(4, _all_groups, tmp_path)[0]
    assert found == {
        "first": [True, True, False, False],
        "halves": [True, True, True, True],
        "rails": [True, True, True, True],
        "one_a_node": [True, False, True, False],
        "pair": [False, True, False, True],
        "groups left": 4,
    }


def _all_groups(context: Any) -> dict[str, Any]:
    from calibrate.measure_collectives import measure_collective

    context = replace(context, world=World(size=4, local_size=2))
    kind = Collective.ALL_REDUCE
    points = [
        _point(kind, 2),
        _point(kind, 2, group=GroupKind.HALVES),
        _point(kind, 2, nodes=2, group=GroupKind.RAILS),
        _point(kind, 2, nodes=2, group=GroupKind.ONE_A_NODE),
        _point(Collective.SEND_RECV, 2, nodes=2, group=GroupKind.PAIR, first=3, second=1),
    ]
    worked = {}
    for point in points:
        outcome = measure_collective(point, context)
        record = Record(point=point, seconds=outcome.seconds, by_rank=outcome.by_rank)
        worked[str(point.group)] = [seconds > 0 for seconds in record.by_rank]
    return {**worked, "groups left": len(context.groups)}


def test_a_message_of_a_pair_goes_from_its_first_rank_to_its_second(tmp_path: Path) -> None:
    assert on_ranks(2, _message, tmp_path) == [2.0, 0.0]


def _message(context: Any) -> float:
    """Return what this rank received of a message from rank 1."""
    from calibrate.measure_collectives import prepared

    point = _point(Collective.SEND_RECV, 2, group=GroupKind.PAIR, first=1, second=0)
    operation = prepared(point, ((1, 0),), context)
    assert operation is not None
    operation.source.fill_(1.0 + context.ranks.rank)
    operation.run()
    return float(operation.result.max())


@pytest.mark.parametrize("kind", OPERATIONS)
def test_lost_numbers_are_a_failure_on_every_rank(kind: Collective, tmp_path: Path) -> None:
    expected = {
        Collective.BROADCAST: "broadcast delivered wrong numbers to rank 1",
        Collective.REDUCE: "reduce delivered wrong numbers to rank 0",
    }.get(kind, f"{kind} delivered wrong numbers to rank 0, 1")
    assert on_ranks(2, _with_broken_fabric, tmp_path, kind) == [expected] * 2


def _with_broken_fabric(context: Any, kind: Collective) -> str:
    from calibrate import measure_collectives

    point = _point(kind, 2)
    operation = measure_collectives.prepared(point, ((0, 1),), context)
    assert operation is not None
    lost = replace(operation, run=lambda: None)
    with pytest.raises(measure_collectives.WrongResultError) as caught:
        measure_collectives.verify(lost, point, context)
    return str(caught.value)


def test_what_does_not_fit_on_one_rank_is_too_large_on_all(tmp_path: Path) -> None:
    assert on_ranks(2, _too_large_on_one, tmp_path) == [True, True]


def _too_large_on_one(context: Any) -> bool:
    from calibrate.measure_ranks import made_by_all
    from calibrate.measuring import TooLargeError

    def make() -> object:
        if context.ranks.rank == 1:
            raise MemoryError
        return object()

    with pytest.raises(TooLargeError):
        made_by_all(make, context.ranks)
    return True


@pytest.mark.parametrize(
    ("point", "words"),
    [
        (_point(Collective.ALL_REDUCE, 2, in_place=False), "all_reduce in place only"),
        (_point(Collective.ALL_GATHER, 2, in_place=True), "all_gather out of place only"),
        (_point(Collective.ALL_GATHER, 2, 12), "a multiple of 8 bytes"),
        (_point(Collective.HOST_COPY, 2), "no operation between ranks"),
        (_point(Collective.ALL_REDUCE, 4), "has 2 ranks"),
    ],
)
def test_what_cannot_run_is_refused_on_every_rank(
    point: CollectivePoint, words: str, tmp_path: Path
) -> None:
    assert all(words in said for said in on_ranks(2, _refused, tmp_path, point))


def _refused(context: Any, point: CollectivePoint) -> str:
    from calibrate.measure_collectives import measure_collective
    from simulator.errors import InputError

    with pytest.raises(InputError) as caught:
        measure_collective(point, context)
    return str(caught.value)
