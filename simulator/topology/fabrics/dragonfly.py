"""A dragonfly: groups of routers that are all joined, and groups that are all joined."""

from __future__ import annotations

from math import ceil

import numpy as np
from pydantic import Field

from simulator.errors import InputError, Problem
from simulator.topology.context import Context, known
from simulator.topology.fabrics.fabric_file import Count, FabricFile, finish, link_efficiency
from simulator.topology.fabrics.wiring import Cables, wire
from simulator.topology.topology import Fabric, Unit
from simulator.units import Bandwidth, Seconds


class DragonflyFile(FabricFile):
    """A dragonfly: a routers in a group, with p ports and h global links each, and g groups.

    Ports of units fill router after router, and group after group. Each two routers of a group have
    one link, each two groups have floor(a h / (g - 1)); global links that do not divide evenly stay
    unused. Source: Kim et al., "Technology-driven, highly-scalable dragonfly topology" (ISCA 2008).
    """

    routers: Count
    """a: of one group."""
    ports: Count
    """p: ports of units that are plugged into one router."""
    global_links: Count
    """h: of one router, to other groups."""
    groups: Count | None = None
    """g, at most a h + 1; by default as many as the ports need."""
    local_bandwidth: Bandwidth | None = None
    """Nominal, of one link inside a group and direction; that of a NIC by default."""
    local_latency: Seconds = Field(default=0.0)
    """Of one message on it, besides the NIC's, which is that of the whole way."""
    global_bandwidth: Bandwidth | None = None
    """Nominal, of one link between groups and direction; that of a NIC by default."""
    global_latency: Seconds = Field(default=0.0)
    """Of one message on it, besides the NIC's."""


def dragonfly(file: DragonflyFile, units: int, unit: Unit, context: Context) -> Fabric:
    """Return a dragonfly; router 2 of group 1 is "g1.r2".

    A balanced one has a = 2 p = 2 h. No way is longer than a local, a global and a local link. That
    of a few pairs of routers (24 of 1,152 in one of 36) is two global links, and shorter so.

    Raises:
        InputError: more groups than the global links can join, or fewer than the ports need.
    """
    ports = units * len(unit.ports)
    groups = _groups(file, ports)
    attachment = np.arange(ports, dtype=np.intp).reshape(units, -1) // file.ports
    efficiency = link_efficiency(unit, context)
    names = [f"g{group}.r{router}" for group in range(groups) for router in range(file.routers)]
    bundles = [_local(file, groups, context, efficiency)]
    bundles += [_global(file, groups, context, efficiency)] if groups > 1 else []
    return finish(file, wire(names, bundles), attachment, unit, context)


def _local(file: DragonflyFile, groups: int, context: Context, efficiency: float) -> Cables:
    one, other = np.triu_indices(file.routers, k=1)
    first = np.arange(groups, dtype=np.intp)[:, None] * file.routers
    nominal = known(file.local_bandwidth, context.nic_bandwidth, "fabric.local_bandwidth")
    return Cables(
        one=first + one,
        other=first + other,
        bandwidth=nominal * efficiency,
        latency=file.local_latency,
    )


def _global(file: DragonflyFile, groups: int, context: Context, efficiency: float) -> Cables:
    """Return the links between groups, in the absolute arrangement.

    The global links of a group are numbered router by router, and go to the other groups in order,
    round after round. Source: Hastings et al., "Comparing global link arrangements for dragonfly
    networks" (CLUSTER 2015).
    """
    one, other = np.triu_indices(groups, k=1)
    rounds = file.routers * file.global_links // (groups - 1)
    turn = np.arange(rounds, dtype=np.intp)[:, None] * (groups - 1)
    nominal = known(file.global_bandwidth, context.nic_bandwidth, "fabric.global_bandwidth")
    # Seen from the lower group, the higher one is one place further to the front: it skips itself.
    return Cables(
        one=one * file.routers + (turn + other - 1) // file.global_links,
        other=other * file.routers + (turn + one) // file.global_links,
        bandwidth=nominal * efficiency,
        latency=file.global_latency,
    )


def _groups(file: DragonflyFile, ports: int) -> int:
    a, p, h = file.routers, file.ports, file.global_links
    needed = ceil(ports / (a * p))
    groups = needed if file.groups is None else file.groups
    if groups > a * h + 1:
        raise InputError(
            Problem(
                key="fabric.groups",
                found=f"{groups} groups",
                rule=f"a group has {a} x {h} global links, so there are at most {a * h + 1} groups",
                fix=f"global_links = {ceil((groups - 1) / a)}, or fewer and larger groups",
            )
        )
    if groups < needed:
        raise InputError(
            Problem(
                key="fabric.groups",
                found=f"{groups} groups of {a} x {p} ports",
                rule=f"units have {ports} ports",
                fix=f"groups = {needed}",
            )
        )
    return groups
