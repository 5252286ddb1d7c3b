"""Links as a fluid: concurrent flows share each link max-min fairly, up to a cap of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

import simpy

from simulator.cost.sharing import max_min_rates
from simulator.engine.record import Recorder

_ROUNDING = 1e-12
"""Relative; by so much rates may add up to more than a link carries and count as fitting it."""
_UNWATCHED = nullcontext()


class Flow:
    """Bytes on their way over some links.

    `done` succeeds when they have arrived, but only if the flow was ever slower than its cap: an
    undisturbed flow ends when its own clock says so.
    """

    __slots__ = (
        "cap",
        "disturbed",
        "done",
        "links",
        "rate",
        "remaining",
        "updated",
        "version",
        "weights",
    )

    def __init__(
        self,
        links: tuple[Hashable, ...],
        weights: tuple[float, ...],
        size: float,
        cap: float,
        env: simpy.Environment,
    ):
        self.links, self.weights = links, weights
        self.remaining = size
        self.cap = self.rate = cap
        self.updated = env.now
        self.done = env.event()
        self.disturbed = False
        self.version = 0


class Network:
    """Owns the links and the flows on them. Rates change only when a flow starts or ends.

    A link that could carry all its flows at their caps holds up none of them. Only the others, the
    contended ones, are shared anew when something changes.
    """

    def __init__(
        self,
        env: simpy.Environment,
        capacity: Mapping[Hashable, float],
        recorder: Recorder | None = None,
    ) -> None:
        self.env = env
        self.capacity = capacity
        self.recorder = recorder
        self.flows: dict[Hashable, dict[Flow, float]] = {link: {} for link in capacity}
        """The flows on each link, with their weights."""
        self.wanted = dict.fromkeys(capacity, 0.0)
        """Bytes/s that the flows on each link would take at their caps."""
        self.limit = {link: rate * (1 + _ROUNDING) for link, rate in capacity.items()}
        """Bytes/s wanted above which a link is contended."""

    def transfer(
        self,
        links: tuple[Hashable, ...],
        size: float,
        cap: float,
        watched: Callable[[Flow], AbstractContextManager[None]] | None = None,
        weights: tuple[float, ...] | None = None,
    ) -> Generator[simpy.Event, None, None]:
        """Return when `size` bytes have passed `links`, at `cap` bytes/s at most.

        Each byte puts `weights` bytes on the links, by default 1 on each. Alone this takes
        size / cap, the earliest moment at which a flow can end; only a flow that others have slowed
        meanwhile is then waited for. Whoever `watched` the flow may throttle it.
        """
        flow = self.start(links, size, cap, weights)
        cap = flow.cap
        with watched(flow) if watched else _UNWATCHED:
            yield self.env.timeout(size / cap)
            if not flow.disturbed:
                self.stop(flow)
            elif not flow.done.triggered:
                yield flow.done

    def start(
        self,
        links: tuple[Hashable, ...],
        size: float,
        cap: float,
        weights: tuple[float, ...] | None = None,
    ) -> Flow:
        """Put a flow on its links and return it; whoever starts one of infinite size stops it."""
        weights = weights or (1.0,) * len(links)
        loads = list(zip(links, weights, strict=True))
        for link, weight in loads:
            alone = self.capacity[link] / weight
            cap = min(cap, alone)
        flow = Flow(links, weights, size, cap, self.env)
        contended = []
        for link, weight in loads:
            self.flows[link][flow] = weight
            self.wanted[link] = wanted = self.wanted[link] + weight * cap
            if wanted > self.limit[link]:
                contended.append(link)
        if contended:
            self._share(contended)
        return flow

    def stop(self, flow: Flow) -> None:
        """Take a flow off its links."""
        if self.recorder is not None:
            self._record(flow)
        contended = []
        for link, weight in zip(flow.links, flow.weights, strict=True):
            wanted, flows = self.wanted[link], self.flows[link]
            if wanted > self.limit[link]:
                contended.append(link)
            del flows[flow]
            # Rounding does not outlive the flows that it comes from.
            self.wanted[link] = wanted - weight * flow.cap if flows else 0.0
        if contended:
            self._share(contended)

    def throttle(self, flow: Flow, cap: float) -> None:
        """Let a flow take `cap` bytes/s at most from now on."""
        if flow.done.triggered or cap == flow.cap:
            return
        contended = set(self._contended(flow.links))
        for link, weight in zip(flow.links, flow.weights, strict=True):
            self.wanted[link] += weight * (cap - flow.cap)
        flow.cap = cap
        contended.update(self._contended(flow.links))
        self._share(contended, flow)

    def settle(self) -> None:
        """Record what endless flows have carried until now."""
        for flow in {flow for flows in self.flows.values() for flow in flows}:
            self._record(flow)
            flow.updated = self.env.now

    def _contended(self, links: Iterable[Hashable]) -> list[Hashable]:
        """Return those of `links` on which some flow may get less than its cap."""
        wanted, limit = self.wanted, self.limit
        return [link for link in links if wanted[link] > limit[link]]

    def _share(self, links: Iterable[Hashable], changed: Flow | None = None) -> None:
        """Give every flow that can feel a change on `links` its new rate, and `changed` its own."""
        touched = self._connected(links)
        if changed is not None and changed not in touched:
            touched.append(changed)
        if not touched:
            return
        routes, weights = [], []
        for flow in touched:
            held = self._contended(flow.links)
            routes.append(held)
            weights.append([self.flows[link][flow] for link in held])
        caps = [flow.cap for flow in touched]
        rates = max_min_rates(routes, caps, self.capacity, weights)
        for flow, rate in zip(touched, rates, strict=True):
            if rate != flow.rate:
                self._set_rate(flow, rate)

    def _connected(self, links: Iterable[Hashable]) -> list[Flow]:
        """Return all flows that share a link, directly or over contended ones, with `links`."""
        found: dict[Flow, None] = {}
        seen = set(links)
        todo = list(seen)
        while todo:
            for flow in self.flows[todo.pop()]:
                if flow not in found:
                    found[flow] = None
                    new = [link for link in self._contended(flow.links) if link not in seen]
                    seen.update(new)
                    todo.extend(new)
        return list(found)

    def _set_rate(self, flow: Flow, rate: float) -> None:
        self._record(flow)
        now = self.env.now
        flow.remaining -= flow.rate * (now - flow.updated)
        flow.updated, flow.rate, flow.disturbed = now, rate, True
        flow.version += 1
        version = flow.version
        if math.isinf(flow.remaining):
            return
        timer = self.env.timeout(max(0.0, flow.remaining) / rate)
        timer.callbacks.append(lambda _: self._finish(flow, version))

    def _finish(self, flow: Flow, version: int) -> None:
        """End a disturbed flow, unless its rate has changed since this end was foreseen."""
        if version == flow.version:
            flow.done.succeed()
            self.stop(flow)

    def _record(self, flow: Flow) -> None:
        """Note what a flow has carried since its rate changed last."""
        if self.recorder is not None:
            for link, weight in zip(flow.links, flow.weights, strict=True):
                self.recorder.carry(link, flow.updated, self.env.now, weight * flow.rate)
