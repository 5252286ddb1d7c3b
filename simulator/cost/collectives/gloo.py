"""What gloo does its own way: reduce-scatter as all-reduce, broadcast to all children at once.

Source: PyTorch 2.13 torch/csrc/distributed/c10d/ProcessGroupGloo.cpp (`_reduce_scatter_base`);
gloo gloo/broadcast.cc.
"""

from __future__ import annotations

from simulator.cost.collectives.pattern import Members, Traffic, between_members
from simulator.cost.collectives.request import Links, Request, across, flow, network_latency
from simulator.cost.collectives.ring import ring, ring_constants, ring_latency, scale_up_seconds
from simulator.cost.collectives.schemes import flood_scheme
from simulator.cost.plan import CommPlan, LinkKind
from simulator.parallel.groups import Collective


def gloo_reduce_scatter(request: Request, links: Links) -> CommPlan:
    """Return the plan of an all-reduce, of whose result each rank keeps its chunk."""
    whole = Request(collective=Collective.ALL_REDUCE, payload=request.payload, group=request.group)
    return request.plan("gloo_reduce_scatter", *ring(whole, links).phases)


def gloo_broadcast(request: Request, links: Links) -> CommPlan:
    """Return the plan of a binomial tree in which a rank sends to all its children at once.

    Rank `r`, counted from the root, has the children `r + 2^i` below `n` for each `2^i > r`; they
    all end after as many times the `s` bytes of its link as there are. The slowest path is
    0, 1, 3, 7, ...: for `n = 2^l` its ranks have `l`, `l - 1`, ... 1 children, one after another.
    """
    group = request.group
    hops, copies = _slowest_path(group.size)
    wire = copies * request.payload
    constants = ring_constants(links.constants, request.collective)
    if group.domains == 1:
        fixed = ring_latency(constants, hops, wire)
        seconds = scale_up_seconds(constants, links.bandwidth, wire, 0.0)
        return request.plan("gloo_broadcast", flow(LinkKind.SCALE_UP, fixed, wire, seconds))
    fixed = constants.start + network_latency(links, hops, request.payload)
    return request.plan("gloo_broadcast", across(links, fixed, wire))


def gloo_broadcast_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return `s` bytes from each rank to each of its children.

    The wire bytes of the phase are payloads in sequence along the slowest path: more than any one
    rank of it sends.
    """
    _, copies = _slowest_path(plan.group.size)
    return between_members(members, plan.phases[phase].link, flood_scheme).times(1.0 / copies)


def _slowest_path(ranks: int) -> tuple[int, int]:
    """Return the hops of the slowest path from the root, and the payloads that pass in sequence.

    >>> _slowest_path(2), _slowest_path(3), _slowest_path(6), _slowest_path(8)
    ((1, 1), (1, 2), (2, 5), (3, 6))
    """
    hops = copies = rank = 0
    while (first := 2 * rank + 1) < ranks:
        copies += (ranks - 1 - rank).bit_length() - hops
        hops, rank = hops + 1, first
    return hops, copies
