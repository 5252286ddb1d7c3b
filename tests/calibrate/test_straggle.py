from __future__ import annotations

import random
from itertools import combinations

import pytest

from calibrate.pairing import pairs_to_try
from calibrate.points import CollectivePoint, GemmPoint, GroupKind
from calibrate.records import Record, Status
from calibrate.straggle import Part, SlowPair, SlowRank, Stragglers, find_stragglers
from simulator.hardware.accelerator import Dtype
from simulator.parallel.groups import Collective

SIZE = 2.0**20


def _pair(first: int, second: int, seconds: float, nodes: int = 1) -> Record:
    point = CollectivePoint(
        collective=Collective.SEND_RECV,
        ranks=2,
        nodes=nodes,
        bytes=SIZE,
        group=GroupKind.PAIR,
        first=first,
        second=second,
    )
    return Record(point=point, seconds=seconds, spread=0.01, samples=9)


def _gemm(m: int, by_rank: tuple[float, ...]) -> Record:
    point = GemmPoint(dtype=Dtype.BF16, m=m, n=1024, k=1024)
    return Record(point=point, seconds=max(by_rank), spread=0.01, samples=9, by_rank=by_rank)


def test_a_slow_link_between_sound_ranks_is_named() -> None:
    records = [
        _pair(i, j, 4e-3 if (i, j) == (1, 3) else 1e-3) for i, j in combinations(range(5), 2)
    ]
    slow = SlowPair(first=1, second=3, bytes=SIZE, seconds=4e-3, factor=4.0)
    assert find_stragglers(records) == Stragglers(pairs=(slow,))


def test_a_rank_whose_every_pair_is_slow_is_named_once_and_not_its_pairs() -> None:
    records = [_pair(i, j, 3e-3 if 2 in (i, j) else 1e-3) for i, j in combinations(range(4), 2)]
    slow = SlowRank(rank=2, part=Part.LINK, factor=3.0)
    assert find_stragglers(records) == Stragglers(ranks=(slow,))


def test_a_slow_rank_is_found_among_many_of_which_not_all_pairs_were_tried() -> None:
    chance = random.Random(1)
    records = [
        _pair(i, j, (2e-3 if 17 in (i, j) else 1e-3) * chance.uniform(0.98, 1.02))
        for i, j in pairs_to_try(64, 16)
    ]
    found = find_stragglers(records)
    assert [slow.rank for slow in found.ranks] == [17]
    assert found.pairs == ()


def test_pairs_on_different_nodes_are_not_compared_with_neighbours() -> None:
    near = [_pair(i, j, 1e-3) for i, j in combinations(range(4), 2)]
    far = [_pair(i, j, 9e-3, nodes=2) for i in range(4) for j in range(4, 8)]
    assert find_stragglers([*near, *far]) == Stragglers()


def test_scatter_below_a_tenth_makes_no_straggler() -> None:
    chance = random.Random(2)
    records = [_pair(i, j, 1e-3 * chance.uniform(1, 1.09)) for i, j in combinations(range(8), 2)]
    assert find_stragglers(records) == Stragglers()


def test_a_slow_accelerator_is_judged_by_most_of_its_kernels() -> None:
    records = [
        _gemm(1024, (1.0, 1.01, 1.2, 1.0)),
        _gemm(2048, (2.0, 2.9, 2.4, 2.0)),
        _gemm(4096, (4.0, 4.02, 4.8, 4.01)),
    ]
    found = find_stragglers(records)
    assert [(slow.rank, slow.part) for slow in found.ranks] == [(2, Part.COMPUTE)]
    assert found.ranks[0].factor == pytest.approx(1.2)


def test_a_rank_that_took_no_part_is_neither_slow_nor_typical() -> None:
    records = [_gemm(1024, (1.0, 1.0, 2.0, 1.01, 0.0, 0.0, 0.0, 0.0))]
    assert [slow.rank for slow in find_stragglers(records).ranks] == [2]


def test_two_ranks_cannot_tell_which_of_them_is_slow() -> None:
    assert find_stragglers([_pair(0, 1, 1e-3), _gemm(64, (1.0, 2.0))]) == Stragglers()


def test_failed_points_are_left_out() -> None:
    records = [_pair(i, j, 1e-3) for i, j in combinations(range(4), 2) if (i, j) != (0, 1)]
    failed = _pair(0, 1, 9.0).model_copy(update={"status": Status.REJECTED})
    assert find_stragglers([*records, failed]) == Stragglers()
