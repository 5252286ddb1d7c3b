"""What a replay yields: how long, what ranks were busy with, and the trace's own times beside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import Profile
from simulator.interchange.prices import ProfilePrices, recorded_seconds
from simulator.interchange.records import NodeKind, RankTrace, TraceNode, Workload
from simulator.interchange.replay import Played, play

_MOVES = (NodeKind.COLLECTIVE, NodeKind.SEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankUse:
    """What one rank was busy with, seconds."""

    rank: int
    end: float
    """When its last node ended."""
    compute: float
    """In which it computed."""
    exposed: float
    """In which it did not compute while a collective or a message of its own was on its way."""

    @property
    def idle(self) -> float:
        """In which it waited for others, until its own end."""
        return self.end - self.compute - self.exposed


@dataclass(frozen=True, slots=True, kw_only=True)
class KindUse:
    """All nodes of one kind, over all ranks."""

    kind: str
    """Compute, send, load, store, or the collective."""
    count: int
    size: float
    """Bytes that ranks put in, summed."""
    recorded: float
    """Seconds as the trace says, summed."""
    priced: float
    """Seconds on the machine of the profile, summed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One replayed step."""

    step_time: float
    """On the machine of the profile, seconds."""
    recorded: float | None
    """With the durations of the trace; None where it has none of what moves bytes."""
    ranks: tuple[RankUse, ...]
    kinds: tuple[KindUse, ...]
    warnings: tuple[str, ...]


def replay(workload: Workload, profile: Profile, precision: Dtype = Dtype.BF16) -> Replay:
    """Return a checked workload replayed on the machine of a profile.

    Links are not shared: what moves at the same time does so as if it were alone.

    Raises:
        InputError: ranks wait for each other in a circle, or the machine cannot do it.
    """
    prices = ProfilePrices(workload, profile, precision)
    played = play(workload, prices.seconds)
    return Replay(
        step_time=played.step_time,
        recorded=_recorded(workload),
        ranks=tuple(
            _use(rank, workload.ranks[rank], played) for rank in range(len(workload.ranks))
        ),
        kinds=_kinds(workload, prices),
        warnings=tuple(_warnings(workload)),
    )


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the seconds that spans cover, those that overlap counted once.

    >>> covered([(0.0, 2.0), (1.0, 3.0), (5.0, 6.0)])
    4.0
    """
    found = np.array(sorted(spans), dtype=np.float64).reshape(-1, 2)
    if not len(found):
        return 0.0
    reached = np.maximum.accumulate(found[:, 1])
    begins = np.maximum(found[1:, 0], reached[:-1])
    first = found[0, 1] - found[0, 0]
    return float(first + np.maximum(0.0, found[1:, 1] - begins).sum())


def _recorded(workload: Workload) -> float | None:
    moved = [node for nodes in workload.ranks for node in nodes if node.kind in _MOVES]
    if moved and not any(node.seconds for node in moved):
        return None
    return play(workload, recorded_seconds).step_time


def _use(rank: int, nodes: RankTrace, played: Played) -> RankUse:
    times = list(zip(nodes, played.start[rank], played.end[rank], strict=True))
    compute = [(s, e) for node, s, e in times if node.kind is NodeKind.COMPUTE and not node.on_cpu]
    moves = [(s, e) for node, s, e in times if node.kind in _MOVES]
    busy = covered(compute)
    return RankUse(
        rank=rank,
        end=max(played.end[rank], default=0.0),
        compute=busy,
        exposed=covered(compute + moves) - busy,
    )


def _kinds(workload: Workload, prices: ProfilePrices) -> tuple[KindUse, ...]:
    by_kind: dict[str, list[tuple[int, TraceNode]]] = defaultdict(list)
    for rank, nodes in enumerate(workload.ranks):
        for node in nodes:
            if node.kind not in (NodeKind.NOTHING, NodeKind.RECEIVE):
                by_kind[node.collective or node.kind].append((rank, node))
    return tuple(_kind(name, found, prices) for name, found in sorted(by_kind.items()))


def _kind(name: str, found: Sequence[tuple[int, TraceNode]], prices: ProfilePrices) -> KindUse:
    return KindUse(
        kind=str(name),
        count=len(found),
        size=sum(node.size for _, node in found),
        recorded=sum(node.seconds for _, node in found),
        priced=sum(prices.seconds(rank, node) for rank, node in found),
    )


def _warnings(workload: Workload) -> Iterable[str]:
    compute = [n for ns in workload.ranks for n in ns if n.kind is NodeKind.COMPUTE]
    timeless = [node for node in compute if not node.seconds]
    counted = sum(node.flops > 0 for node in timeless)
    if counted:
        how = "their FLOP at the nominal peak, a lower bound"
        yield f"{counted} compute nodes have no duration: {how}"
    rest = len(timeless) - counted
    if rest:
        yield f"{rest} compute nodes have neither duration nor FLOP, and take no time"
