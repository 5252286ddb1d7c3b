"""Accelerators around a switch: a DGX, an NVL72 rack."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from simulator.files import FileRecord
from simulator.topology.context import Context, known
from simulator.topology.graph import Cable, DeviceKind, make_graph
from simulator.topology.topology import Unit
from simulator.topology.units.cards import Card, cards
from simulator.units import Bandwidth, Seconds

SWITCH = "nvswitch"


class NvSwitchFile(FileRecord):
    """Accelerators around one switch that joins all of them at full bandwidth.

    The switch chips of a node or rack are one switch here: each accelerator has an equal share of
    its links on every chip, so that they fill together. A domain larger than a node (NVL72) is one
    unit with the NICs of all its nodes.
    """

    accelerators: int | None = Field(default=None, ge=1, le=10**5)
    """Of one unit; left out, those of the profile's scale-up domain."""
    bandwidth: Bandwidth | None = None
    """Accelerator to switch, one direction; left out, the profile's."""
    latency: Seconds | None = None
    """Accelerator to accelerator; left out, the profile's."""
    pcie_bandwidth: Bandwidth | None = None
    """Accelerator to its NIC, one direction; left out, the profile's from host to accelerator."""
    affinity: tuple[Card, ...] | None = None
    """NIC of each accelerator of a node, from 0; left out, in order, as evenly as it goes."""


def nvswitch(file: NvSwitchFile, context: Context) -> Unit:
    """Return a star: each accelerator on the switch, and on its NIC."""
    size = known(file.accelerators, context.domain, "unit.accelerators")
    bandwidth = known(file.bandwidth, context.scale_up_bandwidth, "unit.bandwidth")
    hop = known(
        None if file.latency is None else file.latency / 2, context.link_latency, "unit.latency"
    )
    names = [f"gpu{place}" for place in range(size)]
    nics = cards(size, file.affinity, context)
    cables = [Cable(one=name, other=SWITCH, bandwidth=bandwidth, latency=hop) for name in names]
    if nics.names:
        pcie = known(file.pcie_bandwidth, context.host_bandwidth, "unit.pcie_bandwidth")
        cables += nics.cables(names, pcie)
    accelerators = [(name, DeviceKind.ACCELERATOR) for name in names]
    return Unit(
        graph=make_graph([*accelerators, (SWITCH, DeviceKind.SWITCH), *nics.devices], cables),
        accelerators=np.arange(size),
        ports=nics.places(size + 1),
        affinity=np.array(nics.affinity, dtype=np.intp),
        port_bandwidth=nics.bandwidth(context),
    )
