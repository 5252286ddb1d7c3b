"""Hierarchical all-reduce: scatter inside the domains, reduce across them, gather inside."""

from __future__ import annotations

from simulator.cost.collectives.request import Links, Request, across, flow, network_latency
from simulator.cost.collectives.ring import ring_latency, scale_up_seconds
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


def _inside(constants: RingConstants, request: Request, links: Links) -> CommPhase:
    steps = request.group.per_domain - 1.0
    chunk = request.payload / request.group.per_domain
    wire = steps * chunk
    seconds = scale_up_seconds(constants, links.bandwidth, wire, chunk)
    return flow(LinkKind.SCALE_UP, ring_latency(constants, steps, wire), wire, seconds)
