"""One collective of a small group, message by message on explicit links.

It is what the phase form stands for: there a collective is one flow, here every rank sends its own
messages and waits for those it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass

import simpy

from simulator.cost.collectives.pattern import Traffic
from simulator.engine.network import Network

Route = Callable[[int, int], tuple[Hashable, ...]]
"""The links from one place to another, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wires:
    """The links between the ranks of a group."""

    route: Route
    capacity: Mapping[Hashable, float]
    """Bytes/s of each link."""
    latency: Callable[[int, int], float]
    """Seconds that a message of no bytes takes from one place to another."""


def seconds_of_rounds(rounds: Sequence[Traffic], payload: float, wires: Wires) -> float:
    """Return when the last message of a collective of `payload` bytes has arrived, seconds.

    `rounds` are messages between places, in bytes for each byte of payload. No barrier parts them:
    a message of a round starts when both its ranks have sent and received all that they had to in
    the round before, since a large one waits for the buffer that it is to land in. All of a round
    start at once, and messages share links max-min fairly.
    """
    env = simpy.Environment()
    play = _Play(env, Network(env, dict(wires.capacity)), payload, wires)
    ready: dict[int, list[simpy.Event]] = {}
    for each in rounds:
        ready = play.start_round(each, ready)
    env.run()
    return float(env.now)


class _Play:
    """Owns the run: its clock, its links, and the messages under way."""

    def __init__(
        self, env: simpy.Environment, network: Network, payload: float, wires: Wires
    ) -> None:
        self.env, self.network = env, network
        self.payload, self.wires = payload, wires

    def start_round(
        self, each: Traffic, ready: dict[int, list[simpy.Event]]
    ) -> dict[int, list[simpy.Event]]:
        """Start the messages of a round; return what each place waits for before the next one.

        `ready` is what places wait for before this one; those without a message in it go on waiting
        for that.
        """
        after: dict[int, list[simpy.Event]] = {}
        for source, target, weight in zip(
            each.source.tolist(), each.target.tolist(), each.weight.tolist(), strict=True
        ):
            needed = ready.get(source, []) + ready.get(target, [])
            size = weight * self.payload
            message = self.env.process(self._message(source, target, size, needed))
            after.setdefault(source, []).append(message)
            after.setdefault(target, []).append(message)
        return {**ready, **after}

    def _message(
        self, source: int, target: int, size: float, needed: list[simpy.Event]
    ) -> Generator[simpy.Event, None, None]:
        yield self.env.all_of(needed)
        latency = self.wires.latency(source, target)
        if latency:
            yield self.env.timeout(latency)
        if size:
            route = self.wires.route(source, target)
            yield from self.network.transfer(route, size, math.inf)
