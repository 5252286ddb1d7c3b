"""Operators whose time is the time to move their bytes."""

from __future__ import annotations

from simulator.hardware.accelerator import Accelerator
from simulator.hardware.kernel_constants import MemoryBoundConstants, MemoryClass


def memory_bound_seconds(
    bytes_moved: float,
    kind: MemoryClass,
    *,
    gpu: Accelerator,
    constants: MemoryBoundConstants,
) -> float:
    """Return the seconds of one kernel that reads and writes `bytes_moved` bytes in all.

    t = start + bytes / (efficiency[kind] memory_bandwidth)

    Device time only: the CPU time of the launch is counted elsewhere. Operands that still lie in
    the last-level cache are faster than this says.
    """
    bandwidth = gpu.memory_bandwidth * constants.efficiency[kind]
    return float(constants.start + bytes_moved / bandwidth)
