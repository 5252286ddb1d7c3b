"""What joins accelerators: the scale-up domain, the NICs, the fabric, the host."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from simulator.files import FileRecord
from simulator.units import Bandwidth, Bytes, Seconds, Watts


class ScaleUpKind(StrEnum):
    """How the accelerators of one scale-up domain are joined."""

    NVSWITCH = "nvswitch"
    NVLINK_MESH = "nvlink-mesh"
    XGMI_MESH = "xgmi-mesh"
    PCIE = "pcie"
    HCCS = "hccs"
    TORUS = "torus"
    SHARED_MEMORY = "shared-memory"


class FabricKind(StrEnum):
    """How nodes are joined."""

    RAIL_OPTIMISED = "rail-optimised"
    FAT_TREE = "fat-tree"
    TORUS = "torus"
    FLAT = "flat"


class ScaleUp(FileRecord):
    """The domain inside which accelerators reach each other without a NIC."""

    kind: ScaleUpKind
    bandwidth: Bandwidth
    """Per accelerator and direction, bytes/s (450 GB/s for the "900 GB/s" of an H100)."""
    latency: Seconds
    """One hop, accelerator to accelerator, seconds."""
    domain_size: int = Field(ge=1)
    """Accelerators in one domain: 8 in a DGX, 72 in an NVL72 rack."""
    in_network_reduction: bool = False
    """Whether the switch reduces (NVLink SHARP), which NVLS collectives need."""
    axes: int | None = Field(default=None, ge=1, le=8)
    """Of a torus: its dimensions, each of which has two links of an accelerator."""
    ring: int | None = Field(default=None, ge=1)
    """Of a torus: an axis closes to a ring where its length is a multiple of it; None: always."""
    rings_together: bool = False
    """Of a torus: whether axes close only where all do (optical switches join whole cubes)."""


class Nic(FileRecord):
    """The network cards of one node."""

    per_node: int = Field(ge=1)
    bandwidth: Bandwidth
    """Of one card, per direction, bytes/s."""
    efficiency: float = Field(gt=0, le=1)
    """Share of the line rate that large messages achieve."""
    latency: Seconds
    """Node to node through the fabric, one message, seconds."""


class Fabric(FileRecord):
    """The network between nodes."""

    kind: FabricKind
    nodes_per_leaf: int = Field(ge=1)
    """Nodes that reach each other through one tier of switches."""
    oversubscription: float = Field(default=1.0, ge=1)
    """Bandwidth into a leaf over bandwidth out of it; 1 is non-blocking."""
    in_network_reduction: bool = False
    """Whether its switches reduce (SHARP), which the algorithm "sharp" needs."""


class Host(FileRecord):
    """The machine that holds the accelerators."""

    memory: Bytes
    pcie_bandwidth: Bandwidth
    """Host to one accelerator, per direction, bytes/s."""
    memory_bandwidth: Bandwidth | None = None
    """Nominal, of all sockets of the node together, bytes/s; None where it is not known."""
    power: Watts
    """Of the node without its accelerators, watts."""
    storage_bandwidth: Bandwidth | None = None
    """Checkpoint write bandwidth of one node, bytes/s; None where it is not known."""


class Node(FileRecord):
    """One node: `accelerators` of them, their scale-up domain, NICs and host."""

    accelerators: int = Field(ge=1)
    scale_up: ScaleUp
    nic: Nic | None = None
    """None: a single node that reaches no other."""
    host: Host
