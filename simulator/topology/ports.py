"""The cables between the ports of units and the fabric."""

from __future__ import annotations

import numpy as np

from simulator.topology.context import Context, known
from simulator.topology.graph import FloatArray
from simulator.topology.topology import Unit


def plug(unit: Unit, units: int, context: Context) -> tuple[FloatArray, FloatArray]:
    """Return bytes/s and seconds of each port's cable, `(units, ports)` both, one direction.

    A unit that knows its own ports decides; else each is one NIC, at the rate that large messages
    achieve.

    Raises:
        InputError: neither the file nor the profile says how fast a NIC is.
    """
    shape = (units, len(unit.ports))
    bandwidth, latency = unit.port_bandwidth, unit.port_latency
    if bandwidth is None:
        bandwidth = np.full(shape[1], known(None, context.nic_rate, "nic.bandwidth"))
    if latency is None:
        latency = np.full(shape[1], known(None, context.cable_latency, "nic.latency"))
    return np.broadcast_to(bandwidth, shape).copy(), np.broadcast_to(latency, shape).copy()
