"""All-reduce in two dimensions, and rings that turn both ways: what a torus has links for."""

from __future__ import annotations

from math import isqrt

import numpy as np

from simulator.cost.collectives.pattern import Members, Traffic, between_members, messages
from simulator.cost.collectives.request import Links, Request, across, flow, network_latency
from simulator.cost.collectives.ring import (
    ring,
    ring_constants,
    ring_latency,
    ring_traffic,
    scale_up_seconds,
)
from simulator.cost.plan import CommPhase, CommPlan, LinkKind
from simulator.parallel.groups import Collective, GroupShape


def torus_2d(request: Request, links: Links) -> CommPlan:
    """Return the plan of an all-reduce over `X` columns of `Y` rows of ranks, phase by phase.

    Reduce-scatter of `s` along the rows, all-reduce of `s/X` along the columns, all-gather of `s`
    along the rows: `X - 1`, `2 (Y-1)` and `X - 1` steps in place of the `2 (n-1)` of one ring, for
    the same bytes. X is the largest divisor of n up to its root. All ranks share a domain or each
    has its own; with domains of several ranks it is `hierarchical`.

    Source: Mikami et al. 2018, "Massively distributed SGD: ImageNet/ResNet-50 training in a
    flash" (2D-torus all-reduce).
    """
    width = grid_width(request.group)
    height = request.group.size // width
    return request.plan(
        "torus_2d",
        _ring_phase(Collective.REDUCE_SCATTER, width, request.payload, request, links),
        _ring_phase(Collective.ALL_REDUCE, height, request.payload / width, request, links),
        _ring_phase(Collective.ALL_GATHER, width, request.payload, request, links),
    )


def torus_2d_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return a ring along each row (phases 0 and 2) or each column (phase 1) of ranks."""
    width = grid_width(plan.group)
    across_rows = phase == 1

    def scheme(count: int) -> Traffic:
        row, column = np.divmod(np.arange(count), width)
        if across_rows:
            following = (row + 1) % (count // width) * width + column
        else:
            following = row * width + (column + 1) % width
        return messages(np.arange(count), following, 1.0)

    return between_members(members, plan.phases[phase].link, scheme)


def grid_width(group: GroupShape) -> int:
    """Return the columns of the squarest grid of all ranks; 1 where there is none.

    >>> [grid_width(GroupShape(size=size, per_domain=size)) for size in (7, 8, 12, 16)]
    [1, 2, 3, 4]
    """
    return next(width for width in range(isqrt(group.size), 0, -1) if group.size % width == 0)


def has_grid(group: GroupShape, links: Links) -> bool:  # noqa: ARG001
    """Return whether ranks form a grid that is no ring, in one domain or one rank a domain."""
    return grid_width(group) > 1 and 1 in (group.domains, group.per_domain)


def ring_bidirectional(request: Request, links: Links) -> CommPlan:
    """Return the plan of two rings of half the bytes each, one each way round.

    Time and bytes of a rank are those of `ring`; but where each neighbour is reached over a link of
    its own, as in a torus, both links out of a rank carry half.

    Source: Jain and Sabharwal 2010, "Optimal bucket algorithms for large MPI collectives on torus
    interconnects".
    """
    return request.plan("ring_bidirectional", *ring(request, links).phases)


def ring_bidirectional_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return half of the messages of a ring, and half of them backward."""
    half = ring_traffic(members, phase, plan).times(0.5)
    return Traffic.joined(half, half.back)


def _ring_phase(
    collective: Collective, ranks: int, payload: float, request: Request, links: Links
) -> CommPhase:
    """Return the phase of a ring collective over `ranks` of the group."""
    steps = (2.0 if collective is Collective.ALL_REDUCE else 1.0) * (ranks - 1)
    chunk = payload / ranks
    wire = steps * chunk
    constants = ring_constants(links.constants, collective)
    if request.group.domains > 1:
        fixed = constants.start + network_latency(links, steps, chunk)
        return across(links, fixed, wire)
    seconds = scale_up_seconds(constants, links.bandwidth, wire, chunk)
    return flow(LinkKind.SCALE_UP, ring_latency(constants, steps, wire), wire, seconds)
