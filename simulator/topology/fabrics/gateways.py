"""How the gateway of each site of a WAN is cabled to the site."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.errors import InputError, Problem
from simulator.topology.checks import unknown_problems
from simulator.topology.fabrics.wiring import Cables
from simulator.topology.graph import IntArray
from simulator.topology.topology import Fabric


def gateway_cables(
    named: Sequence[tuple[str, ...]], fabrics: Sequence[Fabric], long: Sequence[Cables]
) -> list[Cables]:
    """Return the cables between each site's gateway and the switches `named` for it.

    Where none are, they are those that are farthest from the ports: the top tier of a tree. Devices
    are numbered site by site, then come the gateways. Each cable carries as much as all `long`
    links of the site, so that only these are narrow.

    Raises:
        InputError: no such switch, or no switch is higher than the others.
    """
    first = np.cumsum([0, *(len(fabric.graph.devices) for fabric in fabrics)])
    cables = []
    for place, (names, fabric) in enumerate(zip(named, fabrics, strict=True)):
        key = f"fabric.site.{place}.gateway"
        switches = _numbers(names, fabric, key) if names else _highest(fabric, key)
        gateway = int(first[-1]) + place
        ends = [link for link in long if gateway in (link.one[0], link.other[0])]
        cables.append(
            Cables(
                one=first[place] + switches,
                other=np.full(len(switches), gateway, dtype=np.intp),
                bandwidth=sum(link.bandwidth for link in ends),
            )
        )
    return cables


def _numbers(names: tuple[str, ...], fabric: Fabric, key: str) -> IntArray:
    problems = unknown_problems(fabric.graph.devices, names, key)
    if problems:
        raise InputError(*problems)
    return np.array([fabric.graph.number[name] for name in names], dtype=np.intp)


def _highest(fabric: Fabric, key: str) -> IntArray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    graph = fabric.graph
    count = len(graph.devices)
    edges = coo_array((np.ones(len(graph)), (graph.source, graph.target)), shape=(count, count))
    plugged = np.unique(fabric.attachment)
    far = dijkstra(edges, unweighted=True, indices=plugged, min_only=True)
    reached = np.where(np.isfinite(far), far, -1)
    if count > 1 and reached.max() == 0:
        raise InputError(
            Problem(
                key=key,
                rule="this fabric has no highest switches: units are plugged into all of them",
                fix=f'name those that the gateway is cabled to: gateway = ["{graph.devices[0]}"]',
            )
        )
    return np.flatnonzero(reached == reached.max()).astype(np.intp)
