"""Gather and scatter by messages between all pairs of ranks: one step over a full mesh."""

from __future__ import annotations

from simulator.cost.collectives.all_to_all import pairwise
from simulator.cost.collectives.request import Links, Request
from simulator.cost.plan import CommPlan
from simulator.parallel.groups import Collective


def all_pairs(request: Request, links: Links) -> CommPlan:
    """Return the plan in which each rank sends each other rank its chunk of `s/n` directly.

    The bytes of a ring in one step of `n - 1` messages, with the time of `pairwise`; an all-reduce
    is a reduce-scatter and an all-gather, in two steps. In a full mesh each message has a link of
    its own, where a ring would leave most links idle; across domains `(n-r)/n s` passes each NIC
    share, r times the bytes of a ring.

    Source: Cowan et al. 2023, "MSCCLang" (all pairs).
    """
    phases = pairwise(request, links).phases
    laps = 2 if request.collective is Collective.ALL_REDUCE else 1
    return request.plan("all_pairs", *(phases * laps))
