"""How data-parallel replicas differ, in machines and paces, and where they wait for each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm

import numpy as np

from simulator.cost.mixed import Standing
from simulator.cost.network.groups import Alike
from simulator.cost.network.routed import MEETS
from simulator.parallel.layout import DataParallel, ParallelLayout
from simulator.schedule.tasks import WorkKind
from simulator.topology.graph import IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Paces:
    """Replicas by the pace at which they run: one of each class is played for all that are alike.

    Ranks of a stage and replica (tp, cp) run in lockstep, since collectives inside each layer join
    them; so do replicas whose tokens go to the same experts.
    """

    replicas: tuple[Alike, ...]
    standing: tuple[tuple[Standing, ...], ...]
    """[class][stage] the machines that it stands on, each with the factor of its slowest rank."""
    lockstep: int
    """Ranks of a stage that run in lockstep."""
    meeting: Mapping[WorkKind, int]
    """How many classes meet for the works that they do together."""

    @property
    def slowdown(self) -> tuple[tuple[float, ...], ...]:
        """[class][stage] time of compute over that of a sound stage: its slowest rank's.

        1 where a stage stands on several machines, whose costs have the factors in them.
        """
        return tuple(tuple(_factor(stands) for stands in row) for row in self.standing)

    def times(self, slowdown: Sequence[float]) -> Paces:
        """Return the same with `slowdown[s]` of stage s on top, in all classes."""
        standing = (
            tuple(
                tuple((kind, own * factor) for kind, own in stands)
                for stands, factor in zip(row, slowdown, strict=True)
            )
            for row in self.standing
        )
        return replace(self, standing=tuple(standing))


def paces_of(
    layout: ParallelLayout,
    slow: Mapping[int, float],
    *,
    apart: bool,
    kinds: IntArray | None = None,
) -> Paces:
    """Return the paces of a layout with some slow ranks.

    `apart`: every replica is a class of its own, as where each draws its times at random. Of those
    that do not differ one stands for all. `kinds` is the number of each rank's machine; None where
    all are of one kind.

    >>> paces = paces_of(ParallelLayout(tp=2, dp=4, pp=2), {9: 1.1}, apart=False)
    >>> paces.replicas, paces.slowdown
    (((0,), (1, 2, 3)), ((1.0, 1.1), (1.0, 1.0)))
    """
    width = lcm(layout.ep * layout.expert_tp, layout.tp * layout.cp) // (layout.tp * layout.cp)
    blocks = [tuple(range(first, first + width)) for first in range(0, layout.dp, width)]
    rows = _rows(layout, slow, width, kinds)
    if apart:
        classes, standing = blocks, rows
    else:
        found: dict[tuple[Standing, ...], list[int]] = defaultdict(list)
        for block, row in zip(blocks, rows, strict=True):
            found[row] += block
        classes, standing = [tuple(alike) for alike in found.values()], list(found)
    return Paces(
        replicas=tuple(classes),
        standing=tuple(standing),
        lockstep=layout.tp * layout.cp * width,
        meeting=_meeting(layout, len(classes), layout.shard_ranks // layout.cp // width, apart),
    )


def _rows(
    layout: ParallelLayout, slow: Mapping[int, float], width: int, kinds: IntArray | None
) -> list[tuple[Standing, ...]]:
    """Return [block][stage] what blocks of `width` replicas stand on."""
    each, blocks = layout.tp * layout.cp * width, layout.dp // width
    rows = [
        [_machines(kinds, block, stage, each, blocks) for stage in range(layout.pp)]
        for block in range(blocks)
    ]
    for rank, factor in slow.items():
        stage, inside = divmod(rank, each * blocks)
        machines = rows[inside // each][stage]
        kind = 0 if kinds is None else int(kinds[rank])
        machines[kind] = max(machines[kind], factor)
    return [tuple(tuple(sorted(machines.items())) for machines in row) for row in rows]


def _machines(
    kinds: IntArray | None, block: int, stage: int, each: int, blocks: int
) -> dict[int, float]:
    """Return the machines of a block of `each` ranks of a stage, all sound."""
    if kinds is None:
        return {0: 1.0}
    first = (stage * blocks + block) * each
    return dict.fromkeys(map(int, np.unique(kinds[first : first + each])), 1.0)


def _factor(stands: Standing) -> float:
    """Return the factor of a stage that stands on one machine; 1 for several."""
    return stands[0][1] if len(stands) == 1 else 1.0


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
