"""Copy between an accelerator and its host memory."""

from __future__ import annotations

from simulator.cost.collectives.pattern import NOTHING, Members, Traffic
from simulator.cost.collectives.request import Links, Request, flow
from simulator.cost.plan import CommPlan, LinkKind


def host_copy(request: Request, links: Links) -> CommPlan:
    """Return the plan of one copy of `s` bytes, one way: `T = start + s / (efficiency bandwidth)`.

    Each rank of a group copies `s` bytes of its own over its own link.

    Source: `HostCopyConstants`; the bandwidth from the profile's `node.host`.
    """
    constants, wire = links.constants.host_copy, request.payload
    seconds = wire / (constants.efficiency * links.host_bandwidth)
    return request.plan("host_copy", flow(LinkKind.HOST, constants.start, wire, seconds))


def host_copy_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:  # noqa: ARG001
    """Return no messages: no accelerator sends to another."""
    return NOTHING
