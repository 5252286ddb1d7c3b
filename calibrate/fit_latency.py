"""One latency of a fabric from a few small messages: each fabric has its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibrate.collective_points import Point
from calibrate.log_fit import Array, FreeConstant, find
from simulator.cost.collectives.request import Links, Request
from simulator.cost.collectives.select import fastest_plan

_HOP = "hop_latency"
_LOWEST, _HIGHEST = 1e-7, 1e-2
_SPREAD = 3.0
"""Of log(latency): fabrics lie between some us (InfiniBand) and some 100 us (sockets)."""


def with_latency(points: Sequence[Point], links: Links) -> Links:
    """Return the links with the hop latency that predicts the points best; nothing else changes."""
    measured = np.array([point.seconds for point in points])
    prior = FreeConstant(prior=links.hop_latency, low=_LOWEST, high=_HIGHEST, spread=_SPREAD)

    def log_errors(values: dict[str, float]) -> Array:
        trial = replace(links, hop_latency=values[_HOP])
        return np.asarray(np.log(predict_alone(points, trial) / measured))

    return replace(links, hop_latency=find({_HOP: prior}, log_errors).values[_HOP])


def predict_alone(points: Sequence[Point], links: Links) -> Array:
    """Return the seconds of each point by the formulas."""
    requests = (
        Request(collective=point.collective, payload=point.payload, group=point.group)
        for point in points
    )
    return np.array([fastest_plan(request, links).seconds for request in requests])
