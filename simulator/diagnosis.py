"""What the step would gain: each busy link or slow rank taken away, and the step played again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from simulator.api import Forecaster
from simulator.conditions import Conditions
from simulator.parallel.layout import ParallelLayout
from simulator.results import Cause, LinkUse, StepResult
from simulator.topology.changes import with_links
from simulator.topology.topology import Topology

_WIDE = 1000.0
"""Factor of bandwidth that takes a link away as a cause."""
_LEAST = 1e-4
"""Share of the step below which a cause is not one."""
LINKS, RANKS = 3, 5
"""Classes of links, and slow ranks, that are tried."""


def find_causes(
    forecaster: Forecaster, layout: ParallelLayout, result: StepResult
) -> tuple[Cause, ...]:
    """Return the busiest links and slowest ranks that make a simulated step longer, worst first.

    Each is taken away by itself: what two cause together shows in neither.
    """
    found = [
        Cause(what=what, seconds=result.step_time - step_time)
        for what, conditions in _without(forecaster.conditions, result.links)
        for step_time in [_step_time(forecaster.under(conditions), layout)]
        if result.step_time - step_time > _LEAST * result.step_time
    ]
    return tuple(sorted(found, key=lambda cause: -cause.seconds))


def _without(
    conditions: Conditions, links: tuple[LinkUse, ...]
) -> Iterator[tuple[str, Conditions]]:
    """Yield the conditions without each of the likeliest causes, and what that is."""
    network = conditions.network
    if network is not None:
        for use in _cables(links, network.topology)[:LINKS]:
            topology = network.topology
            both = {*use.links, *map(topology.opposite, use.links)}
            wider = {link: _WIDE * float(topology.capacity[link]) for link in both}
            changed = replace(network, topology=with_links(topology, wider))
            alike = f" and {use.count - 1} alike" if use.count > 1 else ""
            yield f"{use.name}{alike}", replace(conditions, network=changed)
    if conditions.background:
        yield "traffic of others", replace(conditions, background=())
    if conditions.jitter is not None:
        yield "jitter", replace(conditions, jitter=None)
    if len(conditions.slow) > 1:
        yield f"all {len(conditions.slow)} slow ranks", replace(conditions, slow={})
    slowest = sorted(conditions.slow.items(), key=lambda item: (-item[1], item[0]))
    for rank, factor in slowest[:RANKS]:
        others = {other: slow for other, slow in conditions.slow.items() if other != rank}
        yield f"rank {rank}, {factor:g} times as slow", replace(conditions, slow=others)


def _cables(links: tuple[LinkUse, ...], topology: Topology) -> list[LinkUse]:
    """Return the busier direction of each class of cables."""
    seen: set[int] = set()
    found = []
    for use in links:
        if not seen.intersection(use.links):
            found.append(use)
        seen.update(use.links, map(topology.opposite, use.links))
    return found


def _step_time(forecaster: Forecaster, layout: ParallelLayout) -> float:
    return forecaster.simulate(layout, spans=False).step_time
