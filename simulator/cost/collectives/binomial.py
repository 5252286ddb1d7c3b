"""Broadcast and reduce along a binomial tree: few steps, many bytes; for small payloads."""

from __future__ import annotations

from simulator.cost.collectives.pattern import (
    Members,
    Traffic,
    between_heads,
    inside_domains,
)
from simulator.cost.collectives.request import Links, Request, across, flow, network_latency
from simulator.cost.collectives.ring import ring_constants, ring_latency, scale_up_seconds
from simulator.cost.collectives.schemes import binomial_scheme
from simulator.cost.plan import CommPhase, CommPlan, LinkKind
from simulator.parallel.groups import Collective


def binomial(request: Request, links: Links) -> CommPlan:
    """Return the plan of `ceil(log2 n)` rounds, in each of which the root sends all `s` bytes.

    Rounds across domains come first (one rank a domain, over its own NIC share), then rounds
    inside them. The root, which sends in every round, is the rank whose bytes are counted.

    Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of collective communication
    operations in MPICH", section 4.2.
    """
    group = request.group
    outside = (group.domains - 1).bit_length()
    inside = (group.per_domain - 1).bit_length()
    constants = ring_constants(links.constants, request.collective)
    phases: list[CommPhase] = []
    start = constants.start
    if outside:
        fixed = start + network_latency(links, outside, request.payload)
        phases.append(across(links, fixed, outside * request.payload))
        start = 0.0
    if inside:
        wire = inside * request.payload
        fixed = ring_latency(constants, inside, request.payload) - constants.start + start
        seconds = scale_up_seconds(constants, links.bandwidth, wire, 0.0)
        phases.append(flow(LinkKind.SCALE_UP, fixed, wire, seconds))
    return request.plan("binomial", *phases)


def binomial_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return the tree over the first ranks of the domains, or the tree in each domain.

    The root, the group's first rank, sends (of a reduction, receives) in every round.
    """
    if plan.phases[phase].link is LinkKind.SCALE_UP:
        rounds = (plan.group.per_domain - 1).bit_length()
        found = inside_domains(members, binomial_scheme)
    else:
        rounds = (plan.group.domains - 1).bit_length()
        found = between_heads(members, binomial_scheme)
    found = found.times(1.0 / rounds)
    return found.back if plan.collective is Collective.REDUCE else found
