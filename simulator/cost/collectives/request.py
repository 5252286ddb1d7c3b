"""What every algorithm is given: the collective that is asked for, and the links it may use."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.cost.plan import CommPhase, CommPlan, LinkKind
from simulator.hardware.collective_constants import CollectiveConstants
from simulator.hardware.profile import Profile
from simulator.parallel.groups import Collective, GroupShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One collective of `payload` bytes over `group`; sizes as `CommPlan` says."""

    collective: Collective
    payload: float
    group: GroupShape
    network_share: float = 1.0
    """See `CommWork.network_share`; only all-to-all asks for another than 1."""

    def plan(self, algorithm: str, *phases: CommPhase) -> CommPlan:
        """Return the plan that answers this request by `phases`."""
        return CommPlan(
            collective=self.collective,
            algorithm=algorithm,
            payload=self.payload,
            group=self.group,
            phases=phases,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The links of one rank, and how the communication library does on them."""

    bandwidth: float
    """Nominal, of the scale-up link, bytes/s per direction."""
    nic_share: float
    """Of the node's NICs, bytes/s per rank and direction; 0 where there is no NIC."""
    hop_latency: float
    """Node to node, one message, seconds."""
    in_network_reduction: bool
    host_bandwidth: float
    """Between an accelerator and its host memory, bytes/s per direction."""
    constants: CollectiveConstants
    fabric_reduces: bool = False
    """Whether switches between nodes reduce (SHARP)."""

    @property
    def hop(self) -> float:
        """Seconds from node to node of one small message, as a collective sees it."""
        return self.constants.network.hop_factor * self.hop_latency


def links_of(profile: Profile, *, fabric_reduces: bool = False) -> Links:
    """Return the links of one rank of a machine.

    Switches between nodes reduce where the profile says so, or what knows the fabric better.
    """
    nic, scale_up = profile.node.nic, profile.node.scale_up
    return Links(
        bandwidth=scale_up.bandwidth,
        nic_share=profile.nic_bandwidth if nic else 0.0,
        hop_latency=nic.latency if nic else 0.0,
        in_network_reduction=scale_up.in_network_reduction,
        host_bandwidth=profile.node.host.pcie_bandwidth,
        constants=profile.constants.collectives,
        fabric_reduces=profile.fabric.in_network_reduction or fabric_reduces,
    )


def flow(link: LinkKind, fixed: float, wire_bytes: float, seconds: float) -> CommPhase:
    """Return a phase of `fixed` seconds and a flow that takes `seconds` when it is alone.

    `seconds` is proportional to `wire_bytes`; both are 0 for an empty payload. Where it is too
    short for a float the payload counts as empty.
    """
    if not seconds:
        return CommPhase(link=link, fixed=fixed, wire_bytes=0.0, rate=1.0)
    return CommPhase(link=link, fixed=fixed, wire_bytes=wire_bytes, rate=wire_bytes / seconds)


def across(links: Links, fixed: float, nic_bytes: float, inside: float = 0.0) -> CommPhase:
    """Return a phase of `fixed` seconds and `nic_bytes` over one NIC share.

    It takes at least the `inside` seconds that the scale-up links need beside it. What passes as
    a burst costs nothing and loads nothing.
    """
    behind = max(0.0, nic_bytes - links.constants.network.burst)
    seconds = max(inside, behind / links.nic_share)
    return flow(LinkKind.SCALE_OUT, fixed, behind or nic_bytes, seconds)


def network_latency(links: Links, hops: float, message: float) -> float:
    """Return the seconds that `hops` messages in sequence between nodes add to a collective.

    `message` is the bytes of one of them over one NIC share: of a ring a chunk, of a tree all that
    the share carries. The formula is that of `NetworkConstants`.
    """
    network = links.constants.network
    bulk = message / (message + network.bulk_bytes)
    packets = message / (message + network.packet_bytes)
    once: float = network.start + bulk * network.bulk_start
    each: float = links.hop * (1.0 + network.packet_factor * packets) + bulk * network.bulk_step
    if network.fill:
        flying = message / (message + network.fill_bytes)
        each += flying * network.fill / links.nic_share
    return once + hops * each
