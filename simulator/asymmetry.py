"""How data-parallel replicas differ, and where they wait for each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import lcm

from simulator.cost.network.groups import Alike
from simulator.cost.network.routed import MEETS
from simulator.parallel.layout import DataParallel, ParallelLayout
from simulator.schedule.tasks import WorkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Paces:
    """Replicas by the pace at which they run: one of each class is played for all that are alike.

    Ranks of a stage and replica (tp, cp) run in lockstep, since collectives inside each layer join
    them; so do replicas whose tokens go to the same experts.
    """

    replicas: tuple[Alike, ...]
    slowdown: tuple[tuple[float, ...], ...]
    """[class][stage] time of compute over that of a sound stage: its slowest rank's."""
    lockstep: int
    """Ranks of a stage that run in lockstep."""
    meeting: Mapping[WorkKind, int]
    """How many classes meet for the works that they do together."""


def paces_of(layout: ParallelLayout, slow: Mapping[int, float], *, apart: bool) -> Paces:
    """Return the paces of a layout with some slow ranks.

    `apart`: every replica is a class of its own, as where each draws its times at random. Of those
    that do not differ one stands for all.

    >>> paces = paces_of(ParallelLayout(tp=2, dp=4, pp=2), {9: 1.1}, apart=False)
    >>> paces.replicas, paces.slowdown
    (((0,), (1, 2, 3)), ((1.0, 1.1), (1.0, 1.0)))
    """
    width = lcm(layout.ep * layout.expert_tp, layout.tp * layout.cp) // (layout.tp * layout.cp)
    blocks = [tuple(range(first, first + width)) for first in range(0, layout.dp, width)]
    rows = _rows(layout, slow, width)
    if apart:
        classes, factors = blocks, rows
    else:
        found: dict[tuple[float, ...], list[int]] = defaultdict(list)
        for block, row in zip(blocks, rows, strict=True):
            found[row] += block
        classes, factors = [tuple(alike) for alike in found.values()], list(found)
    return Paces(
        replicas=tuple(classes),
        slowdown=tuple(factors),
        lockstep=layout.tp * layout.cp * width,
        meeting=_meeting(layout, len(classes), layout.shard_ranks // layout.cp // width, apart),
    )


def _rows(layout: ParallelLayout, slow: Mapping[int, float], width: int) -> list[tuple[float, ...]]:
    """Return [block][stage] the factors of blocks of `width` replicas."""
    each = layout.tp * layout.cp
    rows = [[1.0] * layout.pp for _ in range(layout.dp // width)]
    for rank, factor in slow.items():
        stage, inside = divmod(rank, each * layout.dp)
        row = rows[inside // each // width]
        row[stage] = max(row[stage], factor)
    return [tuple(row) for row in rows]


def _meeting(layout: ParallelLayout, count: int, sharing: int, apart: bool) -> dict[WorkKind, int]:
    """Return how many of `count` classes meet for each kind of work.

    All do for gradients and, where gradients are clipped by their norm, before the update. To
    gather parameters those do that share one copy of them, `sharing` neighbours; where classes are
    no neighbours, all.
    """
    meets = dict.fromkeys(MEETS, count)
    if apart and sharing > 0 and count % sharing == 0:
        meets[WorkKind.GATHER] = sharing
    if layout.data_parallel is not DataParallel.LOCAL_SGD:
        meets[WorkKind.JOIN] = count
    return meets
