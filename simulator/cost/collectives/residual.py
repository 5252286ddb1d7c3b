"""The correction of the formulas by measured points, in one scale-up domain."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import replace

from simulator.cost.collectives.request import Links, Request
from simulator.cost.plan import CommPlan
from simulator.hardware.collective_constants import CollectiveConstants, ResidualCurve

_PAIR = 2
_FADE_OCTAVES = 3.0
"""Doublings of the payload, beyond the last measured one, over which a correction fades to 0."""


def log_residual(request: Request, links: Links) -> float:
    """Return log(measured / modelled) for a request, 0 where nothing was measured near it.

    Linear in log payload between points and in log ranks between curves; 0 for groups smaller or
    larger than those measured and over several domains. Below the smallest payload it stays as
    it is (only latency counts there), beyond the largest it fades out.
    """
    if request.group.domains > 1:
        return 0.0
    ranks, op = request.group.size, request.collective.value
    below: ResidualCurve | None = None
    above: ResidualCurve | None = None
    for curve in links.constants.residual:
        if curve.op != op:
            continue
        if curve.ranks <= ranks and (below is None or curve.ranks > below.ranks):
            below = curve
        if curve.ranks >= ranks and (above is None or curve.ranks < above.ranks):
            above = curve
    if below is None or above is None:
        return 0.0
    low = _at(below, request.payload)
    if below is above:
        return low
    weight = math.log(ranks / below.ranks) / math.log(above.ranks / below.ranks)
    return low + weight * (_at(above, request.payload) - low)


def corrected(plan: CommPlan, log_ratio: float) -> CommPlan:
    """Return the plan with its time multiplied by `exp(log_ratio)`; its bytes stay."""
    if log_ratio == 0.0:
        return plan
    factor = math.exp(log_ratio)
    phases = tuple(
        type(phase)(
            link=phase.link,
            fixed=phase.fixed * factor,
            wire_bytes=phase.wire_bytes,
            rate=phase.rate / factor,
        )
        for phase in plan.phases
    )
    return CommPlan(
        collective=plan.collective,
        algorithm=plan.algorithm,
        payload=plan.payload,
        group=plan.group,
        phases=phases,
    )


def taking_turns(plan: CommPlan, constants: CollectiveConstants) -> CommPlan:
    """Return the plan of two ranks that do not start together; see `CollectiveConstants.apart`."""
    factor = constants.apart.get(plan.collective.value, 1.0)
    if factor == 1.0 or plan.group.size != _PAIR:
        return plan
    phases = tuple(replace(phase, rate=phase.rate / factor) for phase in plan.phases)
    return replace(plan, phases=phases)


def _at(curve: ResidualCurve, payload: float) -> float:
    points, values = curve.payload, curve.log_ratio
    if payload <= points[0]:
        return values[0]
    if payload >= points[-1]:
        octaves = math.log2(payload / points[-1])
        return values[-1] * max(0.0, 1.0 - octaves / _FADE_OCTAVES)
    index = bisect_right(points, payload)
    left, right = points[index - 1], points[index]
    weight = math.log(payload / left) / math.log(right / left)
    return values[index - 1] + weight * (values[index] - values[index - 1])
