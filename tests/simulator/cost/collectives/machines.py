"""A machine of round numbers: 100 GB/s in the domain, 10 a NIC share, 50 to the host, 8 ranks."""

from __future__ import annotations

from typing import Any

from simulator.hardware.cluster import Fabric, FabricKind, Host, Nic, Node, ScaleUp, ScaleUpKind
from simulator.hardware.collective_constants import (
    CollectiveConstants,
    HostCopyConstants,
    NetworkConstants,
    NvlsConstants,
    PairwiseConstants,
    ResidualCurve,
    RingConstants,
    SendRecvConstants,
)
from simulator.hardware.constants import FittedConstants
from simulator.hardware.profile import Profile, ProfileFile
from simulator.units import GB, GIB, US

HOST = 50 * GB
RING = RingConstants(start=10 * US, step_latency=1 * US, efficiency=1.0)
BULKY_RING = RING.model_copy(
    update={"chunk_cost": 0.5, "bulk_start": 20 * US, "bulk_step": 1 * US, "bulk_bytes": 1e6}
)
CONSTANTS = CollectiveConstants(
    all_reduce=RING,
    all_gather=RING,
    reduce_scatter=RING,
    nvls=NvlsConstants(start=20 * US, efficiency=0.5, min_ranks=8),
    all_to_all=PairwiseConstants(start=10 * US, peer_latency=1 * US, efficiency=1.0),
    send_recv=SendRecvConstants(start=10 * US, efficiency=1.0),
    host_copy=HostCopyConstants(start=10 * US, efficiency=1.0),
    network=NetworkConstants(),
)
CURVED = CONSTANTS.model_copy(
    update={
        "all_reduce": BULKY_RING,
        "all_gather": BULKY_RING,
        "reduce_scatter": BULKY_RING,
        "all_to_all": PairwiseConstants(
            start=10 * US,
            peer_latency=1 * US,
            efficiency=0.8,
            chunk_cost=0.5,
            bulk_start=10 * US,
            bulk_bytes=1e5,
        ),
        "host_copy": HostCopyConstants(start=10 * US, efficiency=0.8),
        "network": NetworkConstants(
            start=1 * US,
            packet_factor=0.5,
            packet_bytes=5e3,
            bulk_start=10 * US,
            bulk_step=20 * US,
            bulk_bytes=1e5,
            fill=1e6,
            fill_bytes=2e5,
        ),
        "residual": (
            ResidualCurve(op="all_gather", ranks=8, payload=(1e3, 1e6), log_ratio=(0.1, 0.2)),
        ),
    }
)


def machine(
    *,
    constants: CollectiveConstants = CONSTANTS,
    bandwidth: float = 100 * GB,
    nic_bandwidth: float = 10 * GB,
    latency: float = 10 * US,
    host_bandwidth: float = HOST,
    **scale_up: Any,
) -> Profile:
    """Return a profile that holds only what collectives need."""
    nic = Nic(per_node=8, bandwidth=nic_bandwidth, efficiency=1.0, latency=latency)
    return profile(constants, _scale_up(bandwidth, scale_up), nic, host_bandwidth)


def machine_without_nic() -> Profile:
    """Return a profile of a single node that reaches no other."""
    return profile(CONSTANTS, _scale_up(100 * GB, {}), None)


def profile(
    constants: CollectiveConstants,
    scale_up: ScaleUp,
    nic: Nic | None,
    host_bandwidth: float = HOST,
) -> Profile:
    """Return a profile of these parts; its kernels are left out."""
    host = Host(memory=GIB, pcie_bandwidth=host_bandwidth, power=0.0)
    node = Node(accelerators=8, scale_up=scale_up, nic=nic, host=host)
    fabric = Fabric(kind=FabricKind.FLAT, nodes_per_leaf=64, in_network_reduction=True)
    file = _only(ProfileFile, name="round", node=node, fabric=fabric)
    fitted = _only(FittedConstants, collectives=constants)
    return Profile.model_construct(machine=file, constants=fitted, sha256="")


def _only(kind: Any, **fields: Any) -> Any:
    """Return a record that has these fields only, unchecked."""
    return kind.model_construct(**fields)


def _scale_up(bandwidth: float, changes: dict[str, Any]) -> ScaleUp:
    nominal = ScaleUp(
        kind=ScaleUpKind.NVSWITCH,
        bandwidth=bandwidth,
        latency=1 * US,
        domain_size=8,
        in_network_reduction=True,
    )
    return nominal.model_copy(update=changes)
