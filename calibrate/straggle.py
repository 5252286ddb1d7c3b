"""Finds slow links and slow accelerators in what all ranks or all pairs of them measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median, median_low

from calibrate.limits import OUTLIER_MADS
from calibrate.points import (
    AttentionPoint,
    CollectivePoint,
    GemmPoint,
    GroupKind,
    LayerPoint,
    MemoryBoundPoint,
    SoakPoint,
    Timing,
    UpkeepPoint,
)
from calibrate.records import Record, Status
from simulator.parallel.groups import Collective

LEAST_LINK_EXCESS = 0.1
"""Share by which a link must be slower than others: the scatter that a measurement may have."""
LEAST_COMPUTE_EXCESS = 0.05
"""Likewise of an accelerator, whose kernels scatter less; boards of one kind differ by some 2-3 %
in the clocks that their power allows."""
LEAST_SAMPLES = 3
"""Fewer ranks or pairs say nothing of which one is out of line."""
_COMPUTE = (GemmPoint, AttentionPoint, MemoryBoundPoint, LayerPoint, UpkeepPoint, SoakPoint)
_USABLE = (Status.OK, Status.NOISY)

Pair = tuple[int, int]


class Part(StrEnum):
    """What of a rank is slow."""

    LINK = "link"
    """In every pair that it was measured in."""
    COMPUTE = "compute"
    """Its accelerator, in kernels that all ranks ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowRank:
    """A rank out of line with the others."""

    rank: int
    part: Part
    factor: float
    """Its time over that of the typical rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowPair:
    """Two ranks with a slow link between them, though each has a fast one to another rank."""

    first: int
    second: int
    bytes: float
    seconds: float
    factor: float
    """Its time over that of the typical pair that is as far apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stragglers:
    """All that is out of line, the slowest first."""

    ranks: tuple[SlowRank, ...] = ()
    pairs: tuple[SlowPair, ...] = ()


def find_stragglers(records: Iterable[Record]) -> Stragglers:
    """Return slow accelerators, ranks with slow links, and slow links between other ranks.

    Median and median absolute deviation tell what is out of line, so that a few slow ranks do not
    hide themselves; where half of all are slow there is no telling which is the rule.
    """
    usable = [r for r in records if r.status in _USABLE and r.seconds is not None]
    ranks, pairs = list(_slow_accelerators(usable)), []
    for (size, _), cell in sorted(_cells(usable).items()):
        slow = _slow_ends(cell)
        ranks += [SlowRank(rank=r, part=Part.LINK, factor=f) for r, f in slow.items()]
        pairs += _slow_pairs(cell, slow, size)
    return Stragglers(ranks=_worst_of_each(ranks), pairs=tuple(sorted(pairs, key=_by_factor)))


def out_of_line(times: Mapping[int, float], least: float) -> dict[int, float]:
    """Return which of some times are too long, each over the typical one.

    Typical is the median, or the lower of the two in the middle; too long is more than
    `OUTLIER_MADS` deviations and more than the share `least` above it.

    >>> out_of_line({0: 1.0, 1: 1.02, 2: 2.0, 3: 0.98, 4: 1.0}, 0.1)
    {2: 2.0}
    """
    if len(times) < LEAST_SAMPLES:
        return {}
    typical = median_low(times.values())
    deviation = median_low(abs(time - typical) for time in times.values())
    limit = typical + max(OUTLIER_MADS * deviation, least * typical)
    return {key: time / typical for key, time in times.items() if time > limit}


def _slow_accelerators(records: Sequence[Record]) -> list[SlowRank]:
    """Return ranks whose kernels are slow, by the median over kernels of what all ranks ran."""
    ratios: dict[int, list[float]] = defaultdict(list)
    for record in records:
        if not isinstance(record.point, _COMPUTE):
            continue
        took_part = {rank: seconds for rank, seconds in enumerate(record.by_rank) if seconds > 0}
        if len(took_part) >= LEAST_SAMPLES:
            typical = median_low(took_part.values())
            for rank, seconds in took_part.items():
                ratios[rank].append(seconds / typical)
    slow = out_of_line({rank: median(each) for rank, each in ratios.items()}, LEAST_COMPUTE_EXCESS)
    return [SlowRank(rank=rank, part=Part.COMPUTE, factor=f) for rank, f in slow.items()]


def _cells(records: Sequence[Record]) -> dict[tuple[float, int], dict[Pair, float]]:
    """Return the seconds of each pair, by bytes and by nodes: what can be compared."""
    cells: dict[tuple[float, int], dict[Pair, float]] = defaultdict(dict)
    for record in records:
        point = record.point
        if not isinstance(point, CollectivePoint) or point.group is not GroupKind.PAIR:
            continue
        if point.collective is not Collective.SEND_RECV or point.timing is not Timing.DEVICE:
            continue
        assert point.first is not None
        assert point.second is not None
        assert record.seconds is not None
        cells[point.bytes, point.nodes][point.first, point.second] = record.seconds
    return dict(cells)


def _slow_ends(cell: Mapping[Pair, float]) -> dict[int, float]:
    """Return ranks whose best pair is slow: one with a sound link has a fast pair somewhere."""
    best: dict[int, float] = {}
    for pair, seconds in cell.items():
        for rank in pair:
            best[rank] = min(seconds, best.get(rank, seconds))
    return out_of_line(best, LEAST_LINK_EXCESS)


def _slow_pairs(
    cell: Mapping[Pair, float], slow: Mapping[int, float], size: float
) -> list[SlowPair]:
    """Return slow links between ranks that are not slow as such."""
    sound = [pair for pair in cell if not slow.keys() & set(pair)]
    found = out_of_line({n: cell[pair] for n, pair in enumerate(sound)}, LEAST_LINK_EXCESS)
    return [
        SlowPair(
            first=sound[n][0],
            second=sound[n][1],
            bytes=size,
            seconds=cell[sound[n]],
            factor=factor,
        )
        for n, factor in found.items()
    ]


def _worst_of_each(ranks: Iterable[SlowRank]) -> tuple[SlowRank, ...]:
    """Return each rank and part once, with its largest factor."""
    worst: dict[tuple[int, Part], SlowRank] = {}
    for slow in sorted(ranks, key=_by_factor):
        worst.setdefault((slow.rank, slow.part), slow)
    return tuple(worst.values())


def _by_factor(slow: SlowRank | SlowPair) -> float:
    return -slow.factor
