"""What a forecast that uses host memory says about it."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.hardware.profile import Profile
from simulator.parallel.layout import ParallelLayout
from simulator.results import MemoryUse
from simulator.units import GB
from simulator.workload.stack import Stack

HOST_COPY = "host_copy"
"""The block of constants of copies between device and host."""


def host_capacity(profile: Profile) -> float:
    """Return the bytes of host memory of one accelerator's share of a node."""
    return float(profile.node.host.memory) / profile.node.accelerators


def host_warnings(
    layout: ParallelLayout, stack: Stack, profile: Profile, memory: Sequence[MemoryUse]
) -> tuple[str, ...]:
    """Return what is assumed about offload, and whether host memory is too small for it."""
    if not layout.offload_layers and not layout.optimizer_offload:
        return ()
    warnings = []
    if HOST_COPY in profile.constants.nominal_blocks():
        rate = profile.constants.collectives.host_copy.efficiency
        warnings.append(
            f"{profile.name}: copies to host memory are assumed to reach {rate:.0%} of "
            f"{profile.node.host.pcie_bandwidth / GB:g} GB/s"
        )
    if layout.optimizer_offload:
        share = stack.offload.host_efficiency
        warnings.append(
            f"{stack.name}: the update on the host is assumed to reach {share:.0%} of the CPUs' "
            "memory bandwidth"
        )
    used, there = max(use.host for use in memory), host_capacity(profile)
    if used > there:
        warnings.append(
            f"{profile.name}: {used / GB:.0f} GB of host memory a rank, and there are "
            f"{there / GB:.0f} GB for each of the {profile.node.accelerators} of a node"
        )
    return tuple(warnings)
