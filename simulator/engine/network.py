"""Links as a fluid: concurrent flows share each link max-min fairly, up to a cap of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

import simpy

from simulator.cost.sharing import max_min_rates
from simulator.engine.bundle import Bundle, Flow
from simulator.engine.record import Recorder

__all__ = ["Flow", "Network"]

_ROUNDING = 1e-12
"""Relative; by so much rates may add up to more than a link carries and count as fitting it."""
_UNWATCHED = nullcontext()


class Network:
    """Owns the links and the flows on them. Rates change only when a flow starts or ends.

    Flows with the same cap and loads always have the same rate, and are one bundle. A link that
    could carry all its flows at their caps holds up none of them. Only the others, the contended
    ones, are shared anew when something changes.
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
        self.bundles: dict[Hashable, Bundle] = {}
        """Those with flows, by what their flows have in common."""
        self.on: dict[Hashable, dict[Bundle, float]] = {link: {} for link in capacity}
        """The bundles on each link, with the weight of each of their flows."""
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
        for link, weight in zip(links, weights, strict=True):
            cap = min(cap, self.capacity[link] / weight)
        flow = Flow(self.env.event())
        contended = self._add(flow, self._bundle(links, weights, cap), size)
        if contended:
            self._share(contended)
        return flow

    def stop(self, flow: Flow) -> None:
        """Take a flow off its links."""
        bundle = flow.bundle
        contended = self._remove(flow)
        if contended:
            self._share(contended)
        else:
            self._foresee(bundle)

    def throttle(self, flow: Flow, cap: float) -> None:
        """Let a flow take `cap` bytes/s at most from now on."""
        if flow.done.triggered or cap == flow.cap:
            return
        before = flow.bundle
        self._settle(before)
        left = before.left(flow)
        contended = self._remove(flow)
        contended += self._add(flow, self._bundle(before.links, before.weights, cap), left)
        flow.moved = True
        self._share(contended)
        for bundle in (before, flow.bundle):
            self._foresee(bundle)

    def settle(self) -> None:
        """Record what endless flows have carried until now."""
        for bundle in self.bundles.values():
            self._settle(bundle)

    def _bundle(
        self, links: tuple[Hashable, ...], weights: tuple[float, ...], cap: float
    ) -> Bundle:
        key = links, weights, cap
        bundle = self.bundles.get(key)
        if bundle is None:
            bundle = self.bundles[key] = Bundle(key, self.env.now)
            for link, weight in zip(links, weights, strict=True):
                self.on[link][bundle] = weight
        return bundle

    def _add(self, flow: Flow, bundle: Bundle, size: float) -> list[Hashable]:
        """Put a flow into a bundle; return its links that are now contended."""
        self._settle(bundle)
        bundle.add(flow, size)
        contended = []
        for link, weight in zip(bundle.links, bundle.weights, strict=True):
            self.wanted[link] = wanted = self.wanted[link] + weight * bundle.cap
            if wanted > self.limit[link]:
                contended.append(link)
        return contended

    def _remove(self, flow: Flow) -> list[Hashable]:
        """Take a flow out of its bundle; return its links that were contended."""
        bundle = flow.bundle
        self._settle(bundle)
        bundle.remove(flow)
        if not bundle.count:
            del self.bundles[bundle.key]
        contended = []
        for link, weight in zip(bundle.links, bundle.weights, strict=True):
            wanted, bundles = self.wanted[link], self.on[link]
            if wanted > self.limit[link]:
                contended.append(link)
            if not bundle.count:
                del bundles[bundle]
            # Rounding does not outlive the flows that it comes from.
            self.wanted[link] = wanted - weight * bundle.cap if bundles else 0.0
        return contended

    def _contended(self, links: Iterable[Hashable]) -> list[Hashable]:
        """Return those of `links` on which some flow may get less than its cap."""
        wanted, limit = self.wanted, self.limit
        return [link for link in links if wanted[link] > limit[link]]

    def _share(self, links: Iterable[Hashable]) -> None:
        """Give every bundle that can feel a change on `links` its new rate."""
        touched = self._connected(links)
        if not touched:
            return
        routes, weights = [], []
        for bundle in touched:
            held = self._contended(bundle.links)
            routes.append(held)
            weights.append([self.on[link][bundle] * bundle.count for link in held])
        caps = [bundle.cap for bundle in touched]
        rates = max_min_rates(routes, caps, self.capacity, weights)
        for bundle, rate in zip(touched, rates, strict=True):
            if rate != bundle.rate:
                self._settle(bundle)
                bundle.turn(rate)
            self._foresee(bundle)

    def _connected(self, links: Iterable[Hashable]) -> list[Bundle]:
        """Return all bundles that share a link, directly or over contended ones, with `links`."""
        found: dict[Bundle, None] = {}
        seen = set(links)
        todo = list(seen)
        while todo:
            for bundle in self.on[todo.pop()]:
                if bundle not in found:
                    found[bundle] = None
                    new = [link for link in self._contended(bundle.links) if link not in seen]
                    seen.update(new)
                    todo.extend(new)
        return list(found)

    def _foresee(self, bundle: Bundle) -> None:
        """Set the one timer of a bundle to the end of the first of its flows, if it has slowed.

        A flow that nothing has slowed ends by its own clock, and calls this again. A timer that
        rings too early is set anew then; only an end that has come nearer needs another one.
        """
        flow = bundle.first()
        if flow is None or not flow.disturbed or math.isinf(flow.goal):
            return
        seconds = max(0.0, flow.goal - bundle.carried(self.env.now)) / bundle.rate
        end = self.env.now + seconds
        if bundle.rings <= end:
            return
        bundle.rings = end
        timer = self.env.timeout(seconds)
        timer.callbacks.append(lambda _: self._ring(bundle, end))

    def _ring(self, bundle: Bundle, end: float) -> None:
        """End the flows of a bundle whose time has come, unless an earlier timer was set since."""
        if bundle.rings != end:
            return
        bundle.rings = math.inf
        self._settle(bundle)
        over = bundle.due(_ROUNDING * self.env.now)
        contended: dict[Hashable, None] = {}
        for flow in over:
            flow.done.succeed()
            contended.update(dict.fromkeys(self._remove(flow)))
        self._share(contended)
        self._foresee(bundle)

    def _settle(self, bundle: Bundle) -> None:
        """Bring what a bundle has carried up to now, and record it."""
        now = self.env.now
        if self.recorder is not None:
            for link, weight in zip(bundle.links, bundle.weights, strict=True):
                rate = weight * bundle.rate * bundle.count
                self.recorder.carry(link, bundle.updated, now, rate)
        bundle.settle(now)
