"""Traces played event by event: each node runs once what it waits for has run and it has its turn.

A rank computes one thing at a time on its accelerator and one on its host, the lower number first.
Each communicator of a rank does one collective at a time, in the order of the numbers, when all of
its ranks are there. A message leaves when its sender comes to it, or, on request, when both have.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from simulator.errors import InputError, Problem
from simulator.interchange.matching import At, calls_of, followers_of, partners_of
from simulator.interchange.records import NodeKind, TraceNode, Workload

Price = Callable[[int, TraceNode], float]
"""The seconds of a node of a rank, alone."""
_Engine = tuple[int, NodeKind, bool]
"""What of a rank does one thing at a time: kind of node, on the host or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """When each node of each rank started and ended, seconds from the start."""

    start: tuple[tuple[float, ...], ...]
    end: tuple[tuple[float, ...], ...]

    @property
    def step_time(self) -> float:
        """End of the last node, seconds."""
        return max((end for ends in self.end for end in ends), default=0.0)


def play(workload: Workload, price: Price) -> Played:
    """Return when everything happens if a node takes as long as `price` says.

    The workload has been checked. Raises `InputError` where ranks wait for each other in a circle.
    """
    return _Player(workload, price).play()


@dataclass(slots=True)
class _Queue:
    """What wants the same thing of a rank: one at a time, the lowest number first."""

    waiting: list[tuple[int, int]] = field(default_factory=list)
    busy: bool = False


class _Player:
    """Owns the state of one replay."""

    def __init__(self, workload: Workload, price: Price) -> None:
        self.workload, self.price = workload, price
        self.missing = [[len(node.after) for node in nodes] for nodes in workload.ranks]
        self.behind = [followers_of(nodes) for nodes in workload.ranks]
        self.start = [[-1.0] * len(nodes) for nodes in workload.ranks]
        self.end = [[-1.0] * len(nodes) for nodes in workload.ranks]
        self.queues: dict[_Engine, _Queue] = defaultdict(_Queue)
        self.touched: set[_Engine] = set()
        self.call_of, self.calls = calls_of(workload)
        self.there: dict[tuple[int, int], int] = defaultdict(int)
        self.over: dict[tuple[int, int], int] = defaultdict(int)
        self.partner = partners_of(workload)
        self.events: list[tuple[float, int, int]] = []
        self.now = 0.0

    def play(self) -> Played:
        for rank, missing in enumerate(self.missing):
            for place, count in enumerate(missing):
                if not count:
                    self._ready((rank, place))
        self._take_turns()
        while self.events:
            self.now, rank, place = heapq.heappop(self.events)
            self._finish((rank, place))
            if not self.events or self.events[0][0] > self.now:
                self._take_turns()
        self._check_finished()
        starts, ends = (tuple(map(tuple, times)) for times in (self.start, self.end))
        return Played(start=starts, end=ends)

    def _node(self, at: At) -> TraceNode:
        return self.workload.ranks[at[0]][at[1]]

    def _ready(self, at: At) -> None:
        """Let a node run, or wait for its turn or for other ranks."""
        node = self._node(at)
        match node.kind:
            case NodeKind.COLLECTIVE:
                self._join(at)
            case NodeKind.SEND | NodeKind.RECEIVE:
                self._message(at, node)
            case NodeKind.COMPUTE | NodeKind.LOAD | NodeKind.STORE:
                engine = _engine(at[0], node)
                heapq.heappush(self.queues[engine].waiting, (node.number, at[1]))
                self.touched.add(engine)
            case NodeKind.NOTHING:
                self._begin(at, 0.0)

    def _take_turns(self) -> None:
        """Start what is next on each engine that has become free or has been asked for."""
        for engine in sorted(self.touched):
            queue, rank = self.queues[engine], engine[0]
            if queue.waiting and not queue.busy:
                _, place = heapq.heappop(queue.waiting)
                queue.busy = True
                self._begin((rank, place), self.price(rank, self._node((rank, place))))
        self.touched.clear()

    def _begin(self, at: At, seconds: float) -> None:
        self._set(at, self.now, self.now + seconds)

    def _set(self, at: At, start: float, end: float) -> None:
        self.start[at[0]][at[1]] = start
        heapq.heappush(self.events, (end, *at))

    def _join(self, at: At) -> None:
        """Count a rank in for a collective."""
        group, call = self.call_of[at]
        self.there[group, call] += 1
        self._run_call(group, call)

    def _run_call(self, group: int, call: int) -> None:
        """Run a collective once all are there and the one before is over."""
        ranks = self.calls[group][call]
        free = call == 0 or self.over[group, call - 1] == len(self.calls[group][call - 1])
        if free and self.there[group, call] == len(ranks):
            seconds = max(self.price(at[0], self._node(at)) for at in ranks)
            for at in ranks:
                self._begin(at, seconds)

    def _message(self, at: At, node: TraceNode) -> None:
        """Send at once, or when both are there; a receive is over when all has come."""
        other = self.partner[at]
        self.start[at[0]][at[1]] = self.now
        send, receive = (at, other) if node.kind is NodeKind.SEND else (other, at)
        on_request = node.on_request or self._node(other).on_request
        posted = self.start[other[0]][other[1]] >= 0
        if on_request:
            if posted:
                seconds = self.price(send[0], self._node(send))
                self._begin(send, seconds)
                self._begin(receive, seconds)
        elif at == send:
            self._begin(send, self.price(send[0], node))
        elif self.end[send[0]][send[1]] >= 0:
            self._begin(receive, 0.0)

    def _finish(self, at: At) -> None:
        rank, place = at
        self.end[rank][place] = self.now
        node = self._node(at)
        match node.kind:
            case NodeKind.COLLECTIVE:
                self._next_call(at)
            case NodeKind.SEND:
                self._arrive(self.partner[at], node)
            case NodeKind.COMPUTE | NodeKind.LOAD | NodeKind.STORE:
                self.queues[_engine(rank, node)].busy = False
                self.touched.add(_engine(rank, node))
            case NodeKind.RECEIVE | NodeKind.NOTHING:
                pass
        for follower in self.behind[rank][place]:
            self.missing[rank][follower] -= 1
            if not self.missing[rank][follower]:
                self._ready((rank, follower))

    def _next_call(self, at: At) -> None:
        group, call = self.call_of[at]
        self.over[group, call] += 1
        if call + 1 < len(self.calls[group]):
            self._run_call(group, call + 1)

    def _arrive(self, receive: At, sent: TraceNode) -> None:
        node = self._node(receive)
        if not (sent.on_request or node.on_request) and self.start[receive[0]][receive[1]] >= 0:
            self._set(receive, self.start[receive[0]][receive[1]], self.now)

    def _check_finished(self) -> None:
        stuck = [
            (rank, node)
            for rank, nodes in enumerate(self.workload.ranks)
            for place, node in enumerate(nodes)
            if self.end[rank][place] < 0
        ]
        if stuck:
            shown = "; ".join(f"rank {r}, node {n.number} ({n.name})" for r, n in stuck[:3])
            rule = "ranks must not wait for each other in a circle"
            found = f"{len(stuck)} nodes that never run, among them {shown}"
            raise InputError(Problem(where=self.workload.where, found=found, rule=rule))


def _engine(rank: int, node: TraceNode) -> _Engine:
    return rank, node.kind, node.on_cpu
