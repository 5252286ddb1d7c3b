"""All-to-all by messages between all pairs of ranks, or in two steps: inside domains, across."""

from __future__ import annotations

from simulator.cost.collectives.pattern import (
    Members,
    Traffic,
    between_domains,
    between_members,
    inside_domains,
)
from simulator.cost.collectives.request import Links, Request, across, flow, network_latency
from simulator.cost.collectives.schemes import pairs_scheme
from simulator.cost.plan import CommPlan, LinkKind
from simulator.hardware.collective_constants import PairwiseConstants

_MOST_PAIRS = 2**22
"""Pairs of ranks up to which each is a message of its own: one group of 2048, or 1024 of 64."""


def pairwise(request: Request, links: Links) -> CommPlan:
    """Return the plan in which each rank sends `s/n` of its `s` bytes to every other rank.

    `(r-1)/n s` bytes go over the scale-up link and `(n-r)/n s` over the NIC share, at the same
    time; the slower decides. Time as `PairwiseConstants` says. It is what NCCL does unasked:
    all-to-all is a group of sends and receives; PXN, which relays a message inside the sender's
    domain to the accelerator whose NIC is on the receiver's rail, changes no byte on a NIC.

    With a `network_share` below 1 one copy crosses the network for all ranks of a domain that
    want it, and is spread inside: all of what other ranks want, `(r-1)/r s`, crosses scale-up
    links, at the same time as the network is busy.

    Source: nccl-tests, doc/PERFORMANCE.md (wire bytes); NCCL 2.12 (PXN); DeepEP,
    csrc/kernels/internode.cu (forwarding from the NIC's accelerator to its peers).
    """
    group, constants = request.group, links.constants.all_to_all
    chunk = request.payload / group.size
    nic_bytes = (group.size - group.per_domain) * chunk * request.network_share
    wire = (group.per_domain - 1) * chunk
    if request.network_share < 1.0:
        wire *= group.domains
    fixed = _latency(constants, group.size - 1, chunk)
    inside = (wire / constants.efficiency + chunk * constants.chunk_cost) / links.bandwidth
    if group.domains == 1:
        return request.plan("pairwise", flow(LinkKind.SCALE_UP, fixed, wire, inside))
    fixed += network_latency(links, 1.0, nic_bytes)
    inside = inside if group.per_domain > 1 else 0.0
    return request.plan("pairwise", across(links, fixed, nic_bytes, inside))


def two_step(request: Request, links: Links) -> CommPlan:
    """Return the plan of two exchanges, one after the other and not pipelined.

    First the `r` ranks of a domain exchange so that each holds all that goes to its own place in
    the `N` domains: `(r-1)/r s` bytes over the scale-up link. Then the `N` ranks at one place
    exchange: `(N-1)/N s` over the NIC share, the bytes of `pairwise` in messages r times as
    large: `r - 1 + N - 1` messages instead of `n - 1`, which pays where they are small.

    Source: Hwang et al. 2023, "Tutel", section 4.3 (two-dimensional hierarchical all-to-all).
    """
    group, constants = request.group, links.constants.all_to_all
    message = request.payload / group.domains
    nic_bytes = (group.domains - 1) * message * request.network_share
    fixed = _latency(constants, group.domains - 1, message)
    fixed += network_latency(links, 1.0, nic_bytes)
    outside = across(links, fixed, nic_bytes)
    if group.per_domain == 1:
        return request.plan("two_step", outside)
    chunk = request.payload / group.per_domain
    wire = (group.per_domain - 1) * chunk
    seconds = (wire / constants.efficiency + chunk * constants.chunk_cost) / links.bandwidth
    fixed = _latency(constants, group.per_domain - 1, chunk)
    inside = flow(LinkKind.SCALE_UP, fixed, wire, seconds)
    return request.plan("two_step", inside, outside)


def pairwise_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return a message from each rank to every other one on the phase's kind of link.

    In groups of more than 2048 ranks in all the pairs of two domains are taken together, slot by
    slot: the same bytes of each rank and of each pair of domains, and rails kept, as with PXN.
    """
    group, link = plan.group, plan.phases[phase].link
    peers = group.size - (1 if link is LinkKind.SCALE_UP else group.per_domain)
    if link is LinkKind.SCALE_UP or members.accelerators.size * group.size <= _MOST_PAIRS:
        return between_members(members, link, pairs_scheme).times(1.0 / peers)
    return between_domains(members, pairs_scheme, each_pair=True).times(1.0 / peers)


def two_step_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return all pairs in each domain, and all pairs of domains slot by slot.

    Of `s` bytes a rank sends `s/r` to each peer, then `s/N` to its slot in each other domain.
    """
    group = plan.group
    if plan.phases[phase].link is LinkKind.SCALE_UP:
        whole = (group.per_domain - 1) / group.per_domain
        return inside_domains(members, lambda count: pairs_scheme(count).times(1 / count / whole))
    whole = (group.domains - 1) / group.domains
    return between_domains(members, pairs_scheme, each_pair=True).times(1 / group.size / whole)


def _latency(constants: PairwiseConstants, peers: int, chunk: float) -> float:
    square = (chunk / constants.bulk_bytes) ** 2
    bulk = constants.bulk_start * square / (1.0 + square)
    seconds: float = constants.start + peers * constants.peer_latency + bulk
    return seconds
