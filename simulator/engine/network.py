"""Links as a fluid: concurrent flows share each link max-min fairly, up to a cap of their own."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import simpy

from simulator.cost.sharing import max_min_rates


class Flow:
    """Bytes on their way over some links; `done` succeeds when they have arrived."""

    __slots__ = ("cap", "done", "links", "rate", "remaining", "size", "updated", "version")

    def __init__(self, links: tuple[Hashable, ...], size: float, cap: float, done: simpy.Event):
        self.links = links
        self.size = self.remaining = size
        self.cap = cap
        self.done = done
        self.rate = 0.0
        self.updated = 0.0
        self.version = 0


class Network:
    """Owns the links and the flows on them. Rates change only when a flow starts or ends."""

    def __init__(self, env: simpy.Environment, capacity: dict[Hashable, float]) -> None:
        self.env = env
        self.capacity = capacity
        self.flows: dict[Hashable, list[Flow]] = {link: [] for link in capacity}
        self.carried: dict[Hashable, float] = dict.fromkeys(capacity, 0.0)

    def transfer(self, links: tuple[Hashable, ...], size: float, cap: float) -> simpy.Event:
        """Return an event that succeeds when `size` bytes have passed `links`, at `cap` at most."""
        flow = Flow(links, size, cap, self.env.event())
        flow.updated = self.env.now
        for link in links:
            self.flows[link].append(flow)
            self.carried[link] += size
        self._share(links)
        return flow.done

    def _share(self, links: tuple[Hashable, ...]) -> None:
        """Give every flow that can feel a change on `links` its new rate."""
        if not any(self.flows[link] for link in links):
            return
        if len(links) == 1 and len(self.flows[links[0]]) == 1:
            (flow,) = self.flows[links[0]]
            if len(flow.links) == 1:
                self._set_rate(flow, min(flow.cap, self.capacity[links[0]]))
                return
        touched = self._connected(links)
        rates = max_min_rates(
            [flow.links for flow in touched], [flow.cap for flow in touched], self.capacity
        )
        for flow, rate in zip(touched, rates, strict=True):
            self._set_rate(flow, rate)

    def _connected(self, links: Iterable[Hashable]) -> list[Flow]:
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
        if rate == flow.rate:
            return
        now = self.env.now
        flow.remaining -= flow.rate * (now - flow.updated)
        flow.updated, flow.rate = now, rate
        flow.version += 1
        version = flow.version
        timer = self.env.timeout(max(0.0, flow.remaining) / rate)
        timer.callbacks.append(lambda _: self._finish(flow, version))

    def _finish(self, flow: Flow, version: int) -> None:
        if version != flow.version:
            return
        for link in flow.links:
            self.flows[link].remove(flow)
        flow.done.succeed()
        self._share(flow.links)
