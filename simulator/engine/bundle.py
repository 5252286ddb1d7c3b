"""Flows that are alike: equal caps and equal loads, so that they have one rate at all times."""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable
from itertools import count

import simpy

_GONE = -1
_Key = tuple[tuple[Hashable, ...], tuple[float, ...], float]
"""Links, weights and cap."""


class Flow:
    """Bytes on their way over some links.

    `done` succeeds when they have arrived, but only if the flow was ever slower than its cap: an
    undisturbed flow ends when its own clock says so.
    """

    __slots__ = ("bundle", "done", "goal", "moved", "number", "turns")

    bundle: Bundle

    def __init__(self, done: simpy.Event) -> None:
        self.done = done
        self.goal = math.inf
        """Bytes that each flow of the bundle will have carried when this one is over."""
        self.turns = 0
        """Changes of the bundle's rate before it came."""
        self.moved = False
        self.number = _GONE
        """Of its goal among those of the bundle."""

    @property
    def cap(self) -> float:
        """Bytes/s that it takes at most."""
        return self.bundle.cap

    @property
    def disturbed(self) -> bool:
        """Whether it was ever slower than its cap, or had another one."""
        return self.moved or self.turns != self.bundle.turns


class Bundle:
    """Owns the flows of one cap and load.

    As all have one rate, what each carries is the same: a flow of `size` bytes is over when the
    bundle has carried `size` more, a flow each, than when it came. So a change of the rate is one
    change, however many flows there are, and the next to end is always the one with the least goal.
    """

    __slots__ = (
        "_carried",
        "_goals",
        "_numbers",
        "cap",
        "count",
        "key",
        "links",
        "rate",
        "rings",
        "turns",
        "updated",
        "weights",
    )

    def __init__(self, key: _Key, now: float) -> None:
        self.key = key
        self.links, self.weights, self.cap = key
        self.rate, self.updated = self.cap, now
        self.count = 0
        self.turns = 0
        """How often its rate has changed."""
        self.rings = math.inf
        """When its timer rings, seconds."""
        self._carried = 0.0
        self._goals: list[tuple[float, int, Flow]] = []
        self._numbers = count()

    def carried(self, now: float) -> float:
        """Return the bytes that each of its flows has carried since there are any."""
        return self._carried + self.rate * (now - self.updated)

    def settle(self, now: float) -> None:
        """Count what has been carried until now."""
        self._carried = self.carried(now)
        self.updated = now

    def add(self, flow: Flow, size: float) -> None:
        """Let a flow of `size` bytes join, once settled."""
        flow.bundle, flow.goal, flow.turns = self, self._carried + size, self.turns
        flow.moved = flow.moved or self.rate != self.cap
        flow.number = next(self._numbers)
        heapq.heappush(self._goals, (flow.goal, flow.number, flow))
        self.count += 1

    def remove(self, flow: Flow) -> None:
        """Let a flow leave."""
        flow.number = _GONE
        self.count -= 1

    def left(self, flow: Flow) -> float:
        """Return the bytes that a flow still has to carry, once settled."""
        return max(0.0, flow.goal - self._carried)

    def turn(self, rate: float) -> None:
        """Go on at another rate, once settled."""
        self.rate = rate
        self.turns += 1

    def first(self) -> Flow | None:
        """Return the flow that is the first to end."""
        goals = self._goals
        while goals and self._is_gone(goals[0]):
            heapq.heappop(goals)
        return goals[0][2] if goals else None

    def due(self, rounding: float) -> list[Flow]:
        """Return the disturbed flows at the front that need no more than `rounding` seconds."""
        found: list[Flow] = []
        flow = self.first()
        while flow is not None and flow.disturbed and self.left(flow) <= rounding * self.rate:
            found.append(flow)
            heapq.heappop(self._goals)
            flow = self.first()
        return found

    def _is_gone(self, entry: tuple[float, int, Flow]) -> bool:
        _, number, flow = entry
        return flow.number != number or flow.bundle is not self
