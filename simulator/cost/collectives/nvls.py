"""NVLS all-reduce: the switch of one domain reduces and multicasts (NVLink SHARP)."""

from __future__ import annotations

from simulator.cost.collectives.pattern import Members, Traffic, inside_domains
from simulator.cost.collectives.request import Links, Request, flow
from simulator.cost.collectives.schemes import ring_scheme
from simulator.cost.plan import CommPlan, LinkKind
from simulator.hardware.collective_constants import NvlsConstants


def nvls(request: Request, links: Links) -> CommPlan:
    """Return the plan of an all-reduce in the switch: `T = start + s (1 + 1/n) / B`.

    A rank sends its `s` bytes to the switch and the `s/n` that it has reduced back to it.

    Source: NCCL 2.17 release notes (NVLink SHARP); `NvlsConstants`.
    """
    constants, size = links.constants.nvls, request.group.size
    assert constants is not None, "the registry offers it only where there are constants"
    wire = request.payload * (1.0 + 1.0 / size)
    seconds = nvls_seconds(constants, links.bandwidth, request.payload, size)
    return request.plan("nvls", flow(LinkKind.SCALE_UP, constants.start, wire, seconds))


def nvls_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:  # noqa: ARG001
    """Return a ring, which loads every port as the switch does: all wire bytes out and in.

    Where a domain has several tiers of switches, each forwards what it has reduced once, as a ring
    crosses each tier once.
    """
    return inside_domains(members, ring_scheme)


def nvls_seconds(constants: NvlsConstants, bandwidth: float, payload: float, ranks: int) -> float:
    """Return the seconds that the link of each of `ranks` ranks is busy, reducing `payload`."""
    return payload * (1.0 + 1.0 / ranks) / (constants.efficiency * bandwidth)
