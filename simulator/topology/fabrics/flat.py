"""One switch that all ports are plugged into: a LAN."""

from __future__ import annotations

import numpy as np

from simulator.topology.context import Context
from simulator.topology.fabrics.fabric_file import FabricFile, finish
from simulator.topology.fabrics.wiring import wire
from simulator.topology.topology import Fabric, Unit


class FlatFile(FabricFile):
    """One switch, "switch", that is never full itself: only the cables of ports are."""


def flat(file: FlatFile, units: int, unit: Unit, context: Context) -> Fabric:
    """Return one switch with all ports plugged into it."""
    attachment = np.zeros((units, len(unit.ports)), dtype=np.intp)
    return finish(file, wire(["switch"], []), attachment, unit, context)
