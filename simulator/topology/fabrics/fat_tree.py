"""A fat tree of any number of tiers: all ports of a unit are plugged into one leaf."""

from __future__ import annotations

import numpy as np

from simulator.topology.context import Context
from simulator.topology.fabrics.fabric_file import finish, link_efficiency
from simulator.topology.fabrics.settle import settle
from simulator.topology.fabrics.tier_file import TreeFile
from simulator.topology.fabrics.tiers import leaves_of_ports, tree_graph
from simulator.topology.fabrics.wish import Below
from simulator.topology.ports import plug
from simulator.topology.topology import Fabric, Unit


class FatTreeFile(TreeFile):
    """A fat tree: leaves, and tiers of switches above them. All ports of a unit are on one leaf.

    Units fill leaf after leaf: the last leaf has those that remain, and all its uplinks.
    """


def fat_tree(file: FatTreeFile, units: int, unit: Unit, context: Context) -> Fabric:
    """Return a fat tree over units. Three tiers of radix k hold k^3 / 4 ports without contention.

    Raises:
        InputError: a tier cannot be as the file asks.
    """
    ports = len(unit.ports)
    efficiency = link_efficiency(unit, context)
    bandwidth, _ = plug(unit, 1, context)
    below = Below(
        groups=units,
        switches=1,
        uplinks=ports,
        bandwidth=float(np.mean(bandwidth)) / efficiency,
        apart=1,
    )
    tiers = settle(file.tiers, below, None, context, efficiency)
    attachment = leaves_of_ports(tiers[0], units, ports)
    return finish(file, tree_graph(tiers), attachment, unit, context)
