"""All-to-all by messages between all pairs of ranks."""

from __future__ import annotations

from simulator.cost.collectives.request import Links, Request, flow, network_latency
from simulator.cost.plan import CommPlan, LinkKind
from simulator.hardware.collective_constants import PairwiseConstants


def pairwise(request: Request, links: Links) -> CommPlan:
    """Return the plan in which each rank sends `s/n` of its `s` bytes to every other rank.

    `(r-1)/n s` bytes go over the scale-up link and `(n-r)/n s` over the NIC share, at the same
    time; the slower decides. Time as `PairwiseConstants` says.

    Source: nccl-tests, doc/PERFORMANCE.md (wire bytes).
    """
    group, constants = request.group, links.constants.all_to_all
    chunk = request.payload / group.size
    wire = (group.per_domain - 1) * chunk
    nic_bytes = (group.size - group.per_domain) * chunk
    fixed = _latency(constants, group.size - 1, chunk)
    inside = (wire / constants.efficiency + chunk * constants.chunk_cost) / links.bandwidth
    if group.domains == 1:
        return request.plan("pairwise", flow(LinkKind.SCALE_UP, fixed, wire, inside))
    fixed += network_latency(links, 1.0, nic_bytes)
    inside = inside if group.per_domain > 1 else 0.0
    seconds = max(inside, nic_bytes / links.nic_share)
    return request.plan("pairwise", flow(LinkKind.SCALE_OUT, fixed, nic_bytes, seconds))


def _latency(constants: PairwiseConstants, peers: int, chunk: float) -> float:
    square = (chunk / constants.bulk_bytes) ** 2
    bulk = constants.bulk_start * square / (1.0 + square)
    seconds: float = constants.start + peers * constants.peer_latency + bulk
    return seconds
