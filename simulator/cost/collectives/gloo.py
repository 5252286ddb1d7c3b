"""What gloo does its own way: reduce-scatter as all-reduce, broadcast to all children at once.

Source: PyTorch 2.13 torch/csrc/distributed/c10d/ProcessGroupGloo.cpp (`_reduce_scatter_base`);
gloo gloo/broadcast.cc.
"""

from __future__ import annotations

from simulator.cost.collectives.request import Links, Request, across, flow, network_latency
from simulator.cost.collectives.ring import ring, ring_constants, ring_latency, scale_up_seconds
from simulator.cost.plan import CommPlan, LinkKind
from simulator.parallel.groups import Collective


def gloo_reduce_scatter(request: Request, links: Links) -> CommPlan:
    """Return the plan of an all-reduce, of whose result each rank keeps its chunk."""
    whole = Request(collective=Collective.ALL_REDUCE, payload=request.payload, group=request.group)
    return request.plan("gloo_reduce_scatter", *ring(whole, links).phases)


def gloo_broadcast(request: Request, links: Links) -> CommPlan:
    """Return the plan of a binomial tree in which a rank sends to all its children at once.

    The root of `n` ranks has `l = ceil(log2 n)` children, which all end after `l` times the `s`
    bytes of its link; the largest of them then has `l - 1`: along the slowest path a rank's link
    carries `l (l + 1) / 2 s` bytes one after another.
    """
    group = request.group
    levels = (group.size - 1).bit_length()
    wire = levels * (levels + 1) / 2 * request.payload
    constants = ring_constants(links.constants, request.collective)
    if group.domains == 1:
        fixed = ring_latency(constants, levels, wire)
        seconds = scale_up_seconds(constants, links.bandwidth, wire, 0.0)
        return request.plan("gloo_broadcast", flow(LinkKind.SCALE_UP, fixed, wire, seconds))
    fixed = constants.start + network_latency(links, levels, request.payload)
    return request.plan("gloo_broadcast", across(links, fixed, wire))
