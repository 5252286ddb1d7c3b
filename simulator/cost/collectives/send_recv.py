"""Send and receive: each rank sends its payload to one peer."""

from __future__ import annotations

from simulator.cost.collectives.pattern import Members, Traffic, between_members
from simulator.cost.collectives.request import Links, Request, across, flow, network_latency
from simulator.cost.collectives.schemes import chain_scheme, ring_scheme
from simulator.cost.plan import CommPlan, LinkKind

_PAIR = 2


def direct(request: Request, links: Links) -> CommPlan:
    """Return the plan of one message of `s` bytes; between domains it uses one NIC share.

    Source: `SendRecvConstants`; hop latency and share from the profile.
    """
    constants, wire = links.constants.send_recv, request.payload
    if request.group.domains == 1:
        seconds = wire / (constants.efficiency * links.bandwidth)
        return request.plan("direct", flow(LinkKind.SCALE_UP, constants.start, wire, seconds))
    fixed = constants.start + network_latency(links, 1.0, wire)
    return request.plan("direct", across(links, fixed, wire))


def direct_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return a message from each rank to the next, round the group; of a pair, one way.

    A pair is a transfer from its first rank to its second, unless it is the ring of two ranks of
    an axis, which has a stride.
    """
    group = plan.group
    once = group.size == _PAIR and not group.stride
    scheme = chain_scheme if once else ring_scheme
    return between_members(members, plan.phases[phase].link, scheme)
