"""SHARP: the switches of the fabric reduce, so that each byte leaves a rank once (CollNet)."""

from __future__ import annotations

from simulator.cost.collectives.pattern import Members, Traffic
from simulator.cost.collectives.request import Links, Request, across, network_latency
from simulator.cost.collectives.ring import ring_latency, ring_traffic, scale_up_seconds
from simulator.cost.plan import CommPlan


def sharp(request: Request, links: Links) -> CommPlan:
    """Return the plan of an all-reduce in which a rank sends `s/r` up and receives it down.

    Inside a domain every rank first gives each peer the peer's part to reduce, and gets the reduced
    parts last: `2 (r-1)/r s` over its scale-up link in two steps, pipelined with the network; the
    slower decides. A message up to the root of the switches' tree and down again passes as many
    switches as one from node to node, so that it counts as one hop, whatever the number of nodes.

    Source: Graham et al. 2016, "Scalable hierarchical aggregation protocol (SHArP)";
    NCCL 2.18 src/graph/tuning.cc (NCCL_ALGO_COLLNET_DIRECT: two steps inside, one latency across).
    """
    group, constants = request.group, links.constants.all_reduce
    wire = 2.0 * (group.per_domain - 1) / group.per_domain * request.payload
    nic_bytes = request.payload / group.per_domain
    steps = 2.0 if group.per_domain > 1 else 0.0
    fixed = ring_latency(constants, steps, wire) + network_latency(links, 1.0, nic_bytes)
    inside = scale_up_seconds(constants, links.bandwidth, wire, 0.0)
    return request.plan("sharp", across(links, fixed, nic_bytes, inside))


def sharp_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return a ring over the domains, slot by slot, which loads links as the reduction does.

    Each port carries `s/r` up and down; a switch sends on once what it has reduced, as a ring that
    goes through the nodes switch by switch leaves each of them once.
    """
    return ring_traffic(members, phase, plan)
