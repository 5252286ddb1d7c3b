"""Accelerators that are plugged into the fabric themselves: TPUs of a torus."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from simulator.files import FileRecord
from simulator.topology.context import Context, known
from simulator.topology.graph import DeviceKind, make_graph
from simulator.topology.topology import Unit
from simulator.units import Bandwidth


class BareFile(FileRecord):
    """Accelerators that nothing joins but the fabric: each is its own port.

    Its cable stands for the accelerator's own end of all its links, so it has their bandwidth
    together and takes no time; the hops are those of the fabric.
    """

    accelerators: int | None = Field(default=None, ge=1, le=10**5)
    """Of one unit; left out, those of the profile's node."""
    bandwidth: Bandwidth | None = None
    """All links of an accelerator together, one direction; left out, the profile's."""


def bare(file: BareFile, context: Context) -> Unit:
    """Return accelerators without links between them."""
    size = known(file.accelerators, context.accelerators, "unit.accelerators")
    bandwidth = known(file.bandwidth, context.scale_up_bandwidth, "unit.bandwidth")
    own = np.arange(size)
    return Unit(
        graph=make_graph([(f"chip{place}", DeviceKind.ACCELERATOR) for place in own], []),
        accelerators=own,
        ports=own,
        affinity=own,
        port_bandwidth=np.full(size, bandwidth),
        port_latency=np.zeros(size),
    )
