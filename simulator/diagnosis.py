"""What the step would gain: each busy link or slow rank taken away, and the step played again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from simulator.api import Forecaster
from simulator.conditions import Conditions
from simulator.hardware.parts import kinds
from simulator.parallel.layout import ParallelLayout
from simulator.results import Cause, LinkUse, StepResult
from simulator.topology.changes import with_links
from simulator.topology.topology import Topology

_WIDE = 1000.0
"""Factor of bandwidth that takes a link away as a cause."""
_LEAST = 1e-3
"""Share of the step below which a cause is not one."""
KINDS, RANKS = 3, 5
"""Kinds of cables, and slow ranks, that are tried."""
_NUMBERS = re.compile(r"[0-9]+([.-][0-9]+)*")


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
        for what, wide in _cables(links, network.topology):
            changed = replace(network, topology=_widened(network.topology, wide))
            yield what, replace(conditions, network=changed)
    if conditions.background:
        yield "traffic of others", replace(conditions, background=())
    storage = conditions.storage
    if storage is not None and storage.writes is not None and storage.file.write:
        yield "writing of checkpoints", replace(conditions, storage=storage.idle)
    if storage is not None and storage.reads is not None and storage.file.read:
        yield "reading of the dataset", replace(conditions, storage=replace(storage, reads=None))
    if conditions.jitter is not None:
        yield "jitter", replace(conditions, jitter=None)
    yield from _as_fast(conditions)
    if len(conditions.slow) > 1:
        yield f"all {len(conditions.slow)} slow ranks", replace(conditions, slow={})
    slowest = sorted(conditions.slow.items(), key=lambda item: (-item[1], item[0]))
    for rank, factor in slowest[:RANKS]:
        others = {other: slow for other, slow in conditions.slow.items() if other != rank}
        yield f"rank {rank}, {factor:g} times as slow", replace(conditions, slow=others)


def _as_fast(conditions: Conditions) -> Iterator[tuple[str, Conditions]]:
    """Yield a mixed cluster with each of its slower machines in turn as fast as the fastest."""
    machines = kinds(conditions.parts)
    if len(machines) <= 1:
        return
    fastest = max(machines, key=lambda profile: max(profile.accelerator.peak.values()))
    for slower in machines:
        if slower is fastest:
            continue
        parts = tuple(
            replace(part, profile=fastest) if part.profile.sha256 == slower.sha256 else part
            for part in conditions.parts
        )
        what = f"{slower.name}, not as fast as {fastest.name}"
        yield what, replace(conditions, parts=parts)


def _cables(
    links: tuple[LinkUse, ...], topology: Topology
) -> Iterator[tuple[str, Collection[int]]]:
    """Yield the busiest kinds of cables, and of each kind the busiest class if there are several.

    A kind is what joins the same kinds of devices: classes of it are as full as each other where
    traffic is even, so that one alone holds up nothing.
    """
    kinds: dict[str, list[LinkUse]] = {}
    for use in links:
        kinds.setdefault(_kind(use.name), []).append(use)
    for kind, uses in list(kinds.items())[:KINDS]:
        whole = [link for use in uses for link in use.links]
        yield f"all cables between {kind}", whole
        busiest = uses[0]
        both = {*busiest.links, *map(topology.opposite, busiest.links)}
        if not both.issuperset(whole):
            alike = f" and {busiest.count - 1} alike" if busiest.count > 1 else ""
            yield f"{busiest.name}{alike}", both


def _kind(link: str) -> str:
    """Return the kinds of devices that a link joins, whichever way.

    >>> _kind("leaf2 -> spine0"), _kind("node3/nic2 -> leaf0.2")
    ('leaf and spine', 'leaf and node/nic')
    """
    return " and ".join(sorted(_NUMBERS.sub("", end) for end in link.split(" -> ")))


def _widened(topology: Topology, links: Collection[int]) -> Topology:
    """Return the topology with some cables so wide that they hold up nothing, both ways."""
    both = {*links, *map(topology.opposite, links)}
    return with_links(topology, {link: _WIDE * float(topology.capacity[link]) for link in both})


def _step_time(forecaster: Forecaster, layout: ParallelLayout) -> float:
    return forecaster.simulate(layout, spans=False).step_time
