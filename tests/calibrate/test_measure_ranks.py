from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.calibrate.gloo_ranks import on_ranks

pytest.importorskip("torch")


def test_ranks_share_the_slowest_and_all_values(tmp_path: Path) -> None:
    assert on_ranks(3, _shared, tmp_path) == [
        (rank, 3, 3.25, (1.25, 2.25, 3.25)) for rank in range(3)
    ]


def _shared(context: Any) -> tuple[int, int, float, tuple[float, ...]]:
    ranks = context.ranks
    mine = 1.25 + ranks.rank
    ranks.barrier()
    return ranks.rank, ranks.size, ranks.slowest(mine), ranks.gather(mine)


def test_groups_are_made_once_and_their_members_know_only_their_own(tmp_path: Path) -> None:
    assert on_ranks(4, _groups, tmp_path) == [(True, 2), (True, 2), (True, 1), (True, None)]


def _groups(context: Any) -> tuple[bool, int | None]:
    from calibrate.measure_ranks import group_of

    group = group_of(((0, 1), (2,)), context)
    again = group_of(((0, 1), (2,)), context)
    return group is again, None if group is None else group.size()
