"""Ring all-reduce, all-gather and reduce-scatter."""

from __future__ import annotations

from simulator.cost.collectives.pattern import (
    Members,
    Traffic,
    between_domains,
    inside_domains,
)
from simulator.cost.collectives.request import Links, Request, across, flow, network_latency
from simulator.cost.collectives.schemes import ring_scheme
from simulator.cost.plan import CommPlan, LinkKind
from simulator.hardware.collective_constants import CollectiveConstants, RingConstants
from simulator.parallel.groups import Collective


def ring(request: Request, links: Links) -> CommPlan:
    """Return the plan of a ring over all ranks, which sends each byte once around.

    With `s` bytes over `n` ranks, `r` of them in a domain: `L = n-1` steps and
    `W = (n-1)/n s` wire bytes a rank, both doubled for all-reduce. Over several domains every
    r-th step crosses the network, the `r` ranks of a domain carry `W/r` each, and the slower of
    NVLink and network decides.

    Source: nccl-tests, doc/PERFORMANCE.md (wire bytes); `RingConstants` (time).
    """
    group = request.group
    laps = 2.0 if request.collective is Collective.ALL_REDUCE else 1.0
    steps = laps * (group.size - 1)
    chunk = request.payload / group.size
    wire = steps * chunk
    constants = ring_constants(links.constants, request.collective)
    seconds = scale_up_seconds(constants, links.bandwidth, wire, chunk)
    if group.domains == 1:
        fixed = ring_latency(constants, steps, wire)
        return request.plan("ring", flow(LinkKind.SCALE_UP, fixed, wire, seconds))
    crossing = steps / group.per_domain
    nic_bytes = wire / group.per_domain
    fixed = ring_latency(constants, steps - crossing, wire)
    fixed += network_latency(links, crossing, chunk)
    inside = seconds if group.per_domain > 1 else 0.0
    return request.plan("ring", across(links, fixed, nic_bytes, inside))


def ring_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return the messages of a ring, by domains in the order in which ranks meet them.

    Inside a domain each rank sends all its wire bytes to the next. Across, `r` rings leave and
    enter each domain by another NIC share, so that each slot sends its wire bytes to the same slot
    of the next domain.
    """
    if plan.phases[phase].link is LinkKind.SCALE_UP:
        return inside_domains(members, ring_scheme)
    return between_domains(members, ring_scheme).times(plan.group.per_domain)


def ring_constants(constants: CollectiveConstants, collective: Collective) -> RingConstants:
    """Return the ring constants of a collective; broadcast and reduce borrow them."""
    if collective is Collective.ALL_REDUCE:
        return constants.all_reduce
    if collective in (Collective.REDUCE_SCATTER, Collective.REDUCE):
        return constants.reduce_scatter
    return constants.all_gather


def ring_latency(constants: RingConstants, steps: float, wire: float) -> float:
    """Return the seconds of `steps` in sequence in which no link is full (see `RingConstants`)."""
    bulk = wire / (wire + constants.bulk_bytes)
    once: float = constants.start + bulk * constants.bulk_start
    each: float = constants.step_latency + bulk * constants.bulk_step
    return once + steps * each


def scale_up_seconds(
    constants: RingConstants, bandwidth: float, wire: float, chunk: float
) -> float:
    """Return the seconds that `wire` bytes a rank take on the scale-up link."""
    return (wire / constants.efficiency + chunk * constants.chunk_cost) / bandwidth
