"""Which links can hold a flow up at all, and the flows that a work puts on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from simulator.cost.plan import CommPhase, LinkKind
from simulator.cost.priced import WorkCost
from simulator.engine.fabric import Fabric
from simulator.schedule.tasks import STREAMS, TaskGraph

Link = tuple[int, LinkKind] | int
"""One direction of the scale-up port, NIC share or host link of a stage's representative rank, by
the stage's row (replica x pp + stage); or a class of links of the fabric."""


_ROUNDING = 1e-12
_TURNS = 4
"""Of a pass, at most: pieces of compute and of what it sends, evenly through the pass. With more
the flows of passes and of others meet in smaller pieces, which changes little."""
_MOST_TURNS = 20_000
"""Of all passes of a step together, as long as each has one."""


class Stop(NamedTuple):
    """One phase of a collective, with those of its links on which it can meet another flow."""

    phase: CommPhase
    links: tuple[Hashable, ...]
    weights: tuple[float, ...]


class Routes:
    """Knows the links on which flows can meet, and what each work puts on them.

    A stream runs its tasks one at a time. So a link that carries the largest flow of every stream
    at once holds none of them up, and no flow is played on it, unless it is to be recorded: a phase
    that meets nothing is a delay.
    """

    def __init__(
        self,
        graph: TaskGraph,
        costs: Sequence[Sequence[WorkCost]],
        sizes: Sequence[int],
        capacity: Sequence[Mapping[LinkKind, float]],
        fabric: Fabric,
    ) -> None:
        """`capacity` is the bytes/s of each kind of link of a rank, by the row of its stage."""
        self.graph, self.costs = graph, costs
        lanes = _runs_of_works(graph, sizes)
        self.shared = _shared_links(lanes, costs, capacity, fabric, graph.pp)
        self.carried = _carried(lanes, costs, graph.pp)
        own = (link for link in self.shared if not isinstance(link, int))
        self.capacity: dict[Hashable, float] = {
            **dict(enumerate(fabric.capacity)),
            **{link: capacity[link[0]][link[1]] for link in own},
        }
        """Bytes/s of all links on which flows are played."""
        bursting = sum(n for (work, _, _), n in lanes.items() if _bursts(costs, work))
        self.turns = min(_TURNS, max(1, _MOST_TURNS // (bursting * len(costs) or 1)))
        """How often a pass alternates between compute and what it sends, at most."""
        self._found: dict[tuple[int, int, int, int], tuple[Stop, ...]] = {}

    def of(self, work: int, replica: int, stage: int, size: int) -> tuple[Stop, ...]:
        """Return the phases of a work that `size` replicas do together, from `replica` on.

        Nothing where none of them can meet another flow.
        """
        if not self.shared:
            return ()
        key = (work, replica, stage, size)
        found = self._found.get(key)
        if found is None:
            rows = _rows(replica, stage, size, self.graph.pp)
            phases = _phases(self.costs[replica][work])
            stops = tuple(self._stop(phase, rows) for phase in phases)
            found = self._found[key] = stops if any(stop.links for stop in stops) else ()
        return found

    def links_of(self, work: int, replica: int, stage: int, size: int) -> frozenset[Hashable]:
        """Return the links on which a work can meet another flow."""
        stops = self.of(work, replica, stage, size)
        return frozenset(link for stop in stops for link in stop.links)

    def hinders_any(self) -> bool:
        """Return whether any work of a replica takes longer than its cost says, even alone.

        So it is where a link carries less than one flow asks for, or where all that a pass sends in
        turn takes longer than the pass.
        """
        return any(
            self._hinders(stop) or sum(burst.seconds for burst in cost.bursts) > most
            for replica, costs in enumerate(self.costs if self.shared else ())
            for work, cost in enumerate(costs)
            for most in [cost.seconds * (1 + _ROUNDING)]
            for stop in self.of(work, replica, self.graph.works[work].stage, 1)
        )

    def _hinders(self, stop: Stop) -> bool:
        rate = stop.phase.rate
        return any(
            weight * rate > self.capacity[link] * (1 + _ROUNDING)
            for link, weight in zip(stop.links, stop.weights, strict=True)
        )

    def unmet(self, cost: WorkCost) -> tuple[Stop, ...]:
        """Return the phases of a work none of which meets another flow."""
        return tuple(Stop(phase, (), ()) for phase in _phases(cost))

    def _stop(self, phase: CommPhase, rows: Sequence[int]) -> Stop:
        met = [(link, w) for link, w in load_of(phase, rows) if link in self.shared]
        return Stop(phase, tuple(link for link, _ in met), tuple(w for _, w in met))


def load_of(phase: CommPhase, rows: Sequence[int]) -> Iterator[tuple[Link, float]]:
    """Yield the links that a phase of the stages in `rows` loads, with its weight on each."""
    if phase.over is not None:
        yield from zip(phase.over.links, phase.over.weights, strict=True)
    else:
        for row in rows:
            yield (row, phase.link), 1.0


def _bursts(costs: Sequence[Sequence[WorkCost]], work: int) -> bool:
    return any(row[work].bursts for row in costs)


def _runs_of_works(graph: TaskGraph, sizes: Sequence[int]) -> Lanes:
    """Return how often each work is done; equal works run on one stream.

    Of joins, which load nothing, some are met at and some are not.
    """
    stream, size = (
        dict(zip(graph.work, graph.stream, strict=True)),
        dict(zip(graph.work, sizes, strict=True)),
    )
    return {(work, stream[work], size[work]): runs for work, runs in Counter(graph.work).items()}


Lanes = Mapping[tuple[int, int, int], int]
"""How often each work is done on each stream by each number of replicas together."""


def _shared_links(
    lanes: Lanes,
    costs: Sequence[Sequence[WorkCost]],
    capacity: Sequence[Mapping[LinkKind, float]],
    fabric: Fabric,
    pp: int,
) -> set[Link]:
    """Return the links that their streams can fill together."""
    wanted: dict[Link, dict[int, float]] = defaultdict(dict)
    for lane, phase, rows in _flows(lanes, costs, pp):
        for link, weight in load_of(phase, rows):
            # Of a meeting the own links of a member belong to its own stream.
            user = lane if isinstance(link, int) else STREAMS * link[0] + lane % STREAMS
            users = wanted[link]
            users[user] = max(users.get(user, 0.0), weight * phase.rate)
    for number, traffic in enumerate(fabric.background):
        for link, weight in zip(traffic.load.links, traffic.load.weights, strict=True):
            wanted[link][-1 - number] = weight * traffic.demand

    def is_shared(link: Link) -> bool:
        users = wanted[link]
        if fabric.record:
            return True
        if len(users) == 1:
            return False
        row, kind = (link, None) if isinstance(link, int) else link
        full = fabric.capacity[row] if kind is None else capacity[row][kind]
        return sum(users.values()) > full

    return {link for link in wanted if is_shared(link)}


def _carried(lanes: Lanes, costs: Sequence[Sequence[WorkCost]], pp: int) -> dict[Link, float]:
    """Return the bytes that each link carries in the step."""
    carried: dict[Link, float] = defaultdict(float)
    for (work, lane, size), runs in lanes.items():
        for replica in range(0, len(costs), size):
            rows = _rows(replica, lane // STREAMS, size, pp)
            for phase in _phases(costs[replica][work]):
                for link, weight in load_of(phase, rows):
                    carried[link] += weight * phase.wire_bytes * runs
    return dict(carried)


def _flows(
    lanes: Lanes, costs: Sequence[Sequence[WorkCost]], pp: int
) -> Iterator[tuple[int, CommPhase, Sequence[int]]]:
    """Yield the stream of every flow, its phase, and the rows of the stages that take part."""
    for work, lane, size in lanes:
        for replica in range(0, len(costs), size):
            rows = _rows(replica, lane // STREAMS, size, pp)
            for phase in _phases(costs[replica][work]):
                yield STREAMS * pp * replica + lane, phase, rows


def _rows(replica: int, stage: int, size: int, pp: int) -> range:
    return range(replica * pp + stage, (replica + size) * pp + stage, pp)


def _phases(cost: WorkCost) -> Iterator[CommPhase]:
    """Yield the phases of collectives, or of what a pass sends."""
    for plan in cost.plans:
        yield from plan.phases
    for burst in cost.bursts:
        yield burst.phase
