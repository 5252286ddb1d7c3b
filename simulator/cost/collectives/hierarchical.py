"""Hierarchical all-reduce: scatter inside the domains, reduce across them, gather inside."""

from __future__ import annotations

from simulator.cost.collectives.pattern import (
    Members,
    Traffic,
    inside_domains,
)
from simulator.cost.collectives.request import Links, Request, across, flow, network_latency
from simulator.cost.collectives.ring import ring_latency, ring_traffic, scale_up_seconds
from simulator.cost.collectives.schemes import ring_scheme
from simulator.cost.plan import CommPhase, CommPlan, LinkKind
from simulator.hardware.collective_constants import RingConstants


def hierarchical(request: Request, links: Links) -> CommPlan:
    """Return the plan of three phases, one after the other and not pipelined.

    With `r` ranks in each of `N` domains: reduce-scatter of `s` in the domain, ring all-reduce
    of `s/r` over `N` ranks (one a domain, `r` of them side by side), all-gather of `s`.

    Source: Jia et al. 2018, "Highly scalable deep learning training system", section 3.3.
    """
    group, constants = request.group, links.constants
    steps = 2.0 * (group.domains - 1)
    nic_bytes = steps / group.size * request.payload
    fixed = constants.all_reduce.start + network_latency(links, steps, nic_bytes / steps)
    outside = across(links, fixed, nic_bytes)
    if group.per_domain == 1:
        return request.plan("hierarchical", outside)
    scatter = _inside(constants.reduce_scatter, request, links)
    gather = _inside(constants.all_gather, request, links)
    return request.plan("hierarchical", scatter, outside, gather)


def hierarchical_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return a ring in each domain, or a ring over the domains slot by slot.

    Of `c` ranks in a domain each sends `(c-1)/c s` in it.
    """
    if plan.phases[phase].link is LinkKind.SCALE_OUT:
        return ring_traffic(members, phase, plan)
    whole = _lap(plan.group.per_domain)
    return inside_domains(members, lambda count: ring_scheme(count).times(_lap(count) / whole))


def _lap(ranks: int) -> float:
    return (ranks - 1) / ranks


def _inside(constants: RingConstants, request: Request, links: Links) -> CommPhase:
    steps = request.group.per_domain - 1.0
    chunk = request.payload / request.group.per_domain
    wire = steps * chunk
    seconds = scale_up_seconds(constants, links.bandwidth, wire, chunk)
    return flow(LinkKind.SCALE_UP, ring_latency(constants, steps, wire), wire, seconds)
