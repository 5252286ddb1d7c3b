"""Parameter server: all ranks send to a central one, which reduces and sends back."""

from __future__ import annotations

from simulator.cost.collectives.pattern import Members, Traffic, between_members
from simulator.cost.collectives.request import Links, Request, across, flow, network_latency
from simulator.cost.collectives.schemes import fan_scheme
from simulator.cost.plan import CommPhase, CommPlan, LinkKind


def parameter_server(request: Request, links: Links) -> CommPlan:
    """Return the plan of an all-reduce as a push of all gradients and a pull of the sum.

    The link of the central rank carries `(n-1) s` bytes in each of the two phases and is the one
    that is counted. Over several domains it receives over its own NIC share what the other
    domains send, `(n-r) s` bytes; its `r-1` peers reach it over the scale-up link at the same
    time, and the slower decides.

    Source: Li et al. 2014, "Scaling distributed machine learning with the parameter server".
    """
    push = _through_the_centre(request, links)
    return request.plan("parameter_server", push, push)


def parameter_server_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return all to the group's first rank (phase 0), or from it to all (phase 1).

    Of an incast the wire bytes are those that the centre receives.
    """
    group, link = plan.group, plan.phases[phase].link
    peers = group.size - (1 if link is LinkKind.SCALE_UP else group.per_domain)
    push = between_members(members, link, fan_scheme).times(1.0 / peers)
    return push.back if phase else push


def _through_the_centre(request: Request, links: Links) -> CommPhase:
    group, constants = request.group, links.constants.send_recv
    wire = (group.per_domain - 1) * request.payload
    inside = wire / (constants.efficiency * links.bandwidth)
    if group.domains == 1:
        return flow(LinkKind.SCALE_UP, constants.start, wire, inside)
    nic_bytes = (group.size - group.per_domain) * request.payload
    fixed = constants.start + network_latency(links, 1.0, nic_bytes)
    return across(links, fixed, nic_bytes, inside)
