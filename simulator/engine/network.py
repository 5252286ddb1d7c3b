"""Links as a fluid: concurrent flows share each link max-min fairly, up to a cap of their own."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from contextlib import AbstractContextManager, nullcontext

import simpy

from simulator.cost.sharing import max_min_rates


class Flow:
    """Bytes on their way over some links.

    `done` succeeds when they have arrived, but only if the flow was ever slower than its cap: an
    undisturbed flow ends when its own clock says so.
    """

    __slots__ = ("cap", "disturbed", "done", "links", "rate", "remaining", "updated", "version")

    def __init__(
        self, links: tuple[Hashable, ...], size: float, cap: float, env: simpy.Environment
    ):
        self.links = links
        self.remaining = size
        self.cap = self.rate = cap
        self.updated = env.now
        self.done = env.event()
        self.disturbed = False
        self.version = 0


class Network:
    """Owns the links and the flows on them. Rates change only when a flow starts or ends."""

    def __init__(self, env: simpy.Environment, capacity: dict[Hashable, float]) -> None:
        self.env = env
        self.capacity = capacity
        self.flows: dict[Hashable, list[Flow]] = {link: [] for link in capacity}

    def transfer(
        self,
        links: tuple[Hashable, ...],
        size: float,
        cap: float,
        watched: Callable[[Flow], AbstractContextManager[None]] | None = None,
    ) -> Generator[simpy.Event, None, None]:
        """Return when `size` bytes have passed `links`, at `cap` bytes/s at most.

        Alone this takes size / cap, the earliest moment at which a flow can end; only a flow that
        others have slowed meanwhile is then waited for. Whoever `watched` the flow may throttle it.
        """
        cap = min(cap, *(self.capacity[link] for link in links))
        flow = Flow(links, size, cap, self.env)
        crowded = any(self.flows[link] for link in links)
        for link in links:
            self.flows[link].append(flow)
        if crowded:
            self._share(links)
        with watched(flow) if watched else nullcontext():
            yield self.env.timeout(size / cap)
            if not flow.disturbed:
                self._remove(flow)
            elif not flow.done.triggered:
                yield flow.done

    def throttle(self, flow: Flow, cap: float) -> None:
        """Let a flow take `cap` bytes/s at most from now on."""
        if not flow.done.triggered and cap != flow.cap:
            flow.cap = cap
            self._share(flow.links)

    def _share(self, links: tuple[Hashable, ...]) -> None:
        """Give every flow that can feel a change on `links` its new rate."""
        touched = self._connected(links)
        routes, caps = [flow.links for flow in touched], [flow.cap for flow in touched]
        for flow, rate in zip(touched, max_min_rates(routes, caps, self.capacity), strict=True):
            if rate != flow.rate:
                self._set_rate(flow, rate)

    def _connected(self, links: tuple[Hashable, ...]) -> list[Flow]:
        """Return all flows that share a link, directly or through others, with `links`."""
        found: dict[int, Flow] = {}
        seen, todo = set(links), list(links)
        while todo:
            for flow in self.flows[todo.pop()]:
                if id(flow) not in found:
                    found[id(flow)] = flow
                    new = [link for link in flow.links if link not in seen]
                    seen.update(new)
                    todo.extend(new)
        return list(found.values())

    def _set_rate(self, flow: Flow, rate: float) -> None:
        now = self.env.now
        flow.remaining -= flow.rate * (now - flow.updated)
        flow.updated, flow.rate, flow.disturbed = now, rate, True
        flow.version += 1
        version = flow.version
        timer = self.env.timeout(max(0.0, flow.remaining) / rate)
        timer.callbacks.append(lambda _: self._finish(flow, version))

    def _finish(self, flow: Flow, version: int) -> None:
        """End a disturbed flow, unless its rate has changed since this end was foreseen."""
        if version == flow.version:
            flow.done.succeed()
            self._remove(flow)

    def _remove(self, flow: Flow) -> None:
        for link in flow.links:
            self.flows[link].remove(flow)
        if any(self.flows[link] for link in flow.links):
            self._share(flow.links)
