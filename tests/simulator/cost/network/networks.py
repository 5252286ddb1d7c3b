"""Small networks with round numbers under a forecaster's ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simulator.cost.network.network import Network
from simulator.hardware.profile import Profile
from simulator.topology.build import build_topology
from simulator.topology.changes import with_links
from simulator.topology.context import context_of
from simulator.topology.routing import Router
from simulator.topology.topology_file import parse_topology
from simulator.units import GB
from tests.fakes import NIC

FLAT: dict[str, Any] = {"kind": "flat"}


def two_racks(oversubscription: float, joins: int = 2) -> dict[str, Any]:
    """Return a fabric of leaves with `joins` units of one NIC each, under one spine."""
    uplink = f"{joins * NIC / oversubscription / GB} GB/s"
    return {"kind": "fat-tree", "tiers": [{"joins": joins, "uplinks": 1, "bandwidth": uplink}, {}]}


def network_on(
    profile: Profile,
    fabric: Mapping[str, Any],
    units: int,
    *,
    places: Sequence[int] | None = None,
    changed: Mapping[int, float] | None = None,
) -> Network:
    """Return the network of units of a profile's nodes on a fabric."""
    table = {"title": "test", "unit": {"kind": "nvswitch"}, "fabric": dict(fabric)}
    topology = build_topology(parse_topology(table, "test"), context_of(profile), units)
    topology = with_links(topology, changed or {})
    return Network(
        topology=topology,
        routes=Router(topology),
        places=np.arange(topology.size) if places is None else np.array(places),
        domain_size=profile.node.scale_up.domain_size,
        nominal=profile.node.scale_up.bandwidth,
    )
