"""All kinds of unit and fabric by name; to add one, write its file and a line here.

A builder says what is wrong with its parameters as `InputError`, each key with its table
("fabric.tiers[1].radix"); the name of the file is added for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulator.files import FileRecord
from simulator.topology.context import Context
from simulator.topology.fabrics.dragonfly import DragonflyFile, dragonfly
from simulator.topology.fabrics.fat_tree import FatTreeFile, fat_tree
from simulator.topology.fabrics.flat import FlatFile, flat
from simulator.topology.fabrics.graph import FabricGraphFile, graph_fabric
from simulator.topology.fabrics.rail_optimised import RailOptimisedFile, rail_optimised
from simulator.topology.fabrics.torus import TorusFile, torus
from simulator.topology.fabrics.wan import WanFile, wan
from simulator.topology.topology import Fabric, Unit
from simulator.topology.units.bare import BareFile, bare
from simulator.topology.units.graph import GraphFile, graph_unit
from simulator.topology.units.mesh import MeshFile, mesh
from simulator.topology.units.nvswitch import NvSwitchFile, nvswitch
from simulator.topology.units.pcie import pcie
from simulator.topology.units.pcie_file import PcieFile


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitKind:
    """A kind of unit: its parameters in a file, and what builds it from them."""

    file: type[FileRecord]
    build: Callable[[Any, Context], Unit]
    """(parameters, context)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricKind:
    """A kind of fabric: its parameters in a file, and what builds it from them."""

    file: type[FileRecord]
    build: Callable[[Any, int, Unit, Context], Fabric]
    """(parameters, units, unit, context)"""


UNITS: dict[str, UnitKind] = {
    "nvswitch": UnitKind(file=NvSwitchFile, build=nvswitch),
    "mesh": UnitKind(file=MeshFile, build=mesh),
    "pcie": UnitKind(file=PcieFile, build=pcie),
    "graph": UnitKind(file=GraphFile, build=graph_unit),
    "bare": UnitKind(file=BareFile, build=bare),
}

FABRICS: dict[str, FabricKind] = {
    "fat-tree": FabricKind(file=FatTreeFile, build=fat_tree),
    "rail-optimised": FabricKind(file=RailOptimisedFile, build=rail_optimised),
    "dragonfly": FabricKind(file=DragonflyFile, build=dragonfly),
    "torus": FabricKind(file=TorusFile, build=torus),
    "flat": FabricKind(file=FlatFile, build=flat),
    "wan": FabricKind(file=WanFile, build=wan),
    "graph": FabricKind(file=FabricGraphFile, build=graph_fabric),
}
