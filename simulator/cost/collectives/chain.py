"""Broadcast and reduce along a pipelined chain of all ranks."""

from __future__ import annotations

from simulator.cost.collectives.pattern import (
    Members,
    Traffic,
    between_domains,
    inside_domains,
)
from simulator.cost.collectives.request import Links, Request, across, flow, network_latency
from simulator.cost.collectives.ring import ring_constants, ring_latency, scale_up_seconds
from simulator.cost.collectives.schemes import chain_scheme
from simulator.cost.plan import CommPlan, LinkKind
from simulator.parallel.groups import Collective


def chain(request: Request, links: Links) -> CommPlan:
    """Return the plan of a chain: each rank passes all `s` bytes on, in chunks, `n-1` steps deep.

    Over several domains `n/r - 1` of the steps cross the network, each over `r` NIC shares.

    Source: nccl-tests, doc/PERFORMANCE.md (broadcast and reduce move `s` over each link).
    """
    group, wire = request.group, request.payload
    constants = ring_constants(links.constants, request.collective)
    crossing = group.domains - 1.0
    fixed = ring_latency(constants, group.size - 1 - crossing, wire)
    seconds = scale_up_seconds(constants, links.bandwidth, wire, 0.0)
    if group.domains == 1:
        return request.plan("chain", flow(LinkKind.SCALE_UP, fixed, wire, seconds))
    nic_bytes = wire / group.per_domain
    fixed += network_latency(links, crossing, nic_bytes)
    inside = seconds if group.per_domain > 1 else 0.0
    return request.plan("chain", across(links, fixed, nic_bytes, inside))


def chain_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return all wire bytes from each rank to the next, or slot by slot to the next domain."""
    if plan.phases[phase].link is LinkKind.SCALE_UP:
        found = inside_domains(members, chain_scheme)
    else:
        found = between_domains(members, chain_scheme).times(plan.group.per_domain)
    return found.back if plan.collective is Collective.REDUCE else found
