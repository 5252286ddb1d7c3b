"""Send and receive: each rank sends its payload to one peer."""

from __future__ import annotations

from simulator.cost.collectives.request import Links, Request, across, flow, network_latency
from simulator.cost.plan import CommPlan, LinkKind


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
