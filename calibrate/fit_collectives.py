"""Fitting of the collective constants to a table of measured times; pure, needs no accelerator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from calibrate.collective_points import Point, read_points, split
from calibrate.collective_residual import residual_curves
from calibrate.log_fit import SOFT
from simulator.cost.collectives.request import Links, Request
from simulator.cost.collectives.residual import log_residual
from simulator.cost.collectives.select import fastest_plan
from simulator.hardware.collective_constants import (
    CollectiveConstants,
    NvlsConstants,
    PairwiseConstants,
    RingConstants,
    SendRecvConstants,
)
from simulator.parallel.groups import Collective
from simulator.units import GIB, KIB, MIB, US

NVLS_FROM = 8
"""Ranks from which an all-reduce is assumed to be done in the switch: on H100 it exceeds the rate
of the same group's all-gather clearly at 8 ranks and not at 4. B200 does not show it as clearly."""
LARGE_WEIGHT = 3.0
"""Of payloads of at least 128 MiB: larger ones, which the tables lack, are extrapolated from them.
Chosen after a look at single-node logs of up to 16 GiB, which therefore validate it weakly."""
LARGE = 128 * MIB
_NVLS_BULK = 16 * MIB
"""Payload from which such a group certainly does; below, whichever is faster."""

_Floats = NDArray[np.float64]
_Rebuild = Callable[[_Floats], CollectiveConstants]
_RINGS = (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER)
_RING_START = np.log([8 * US, 1 * US, 0.8, 0.2, 3 * US, 1 * US, 1 * MIB])
_NVLS_START = np.log([25 * US, 0.6])
_PAIRWISE_START = np.log([8 * US, 0.3 * US, 0.8, 0.2, 5 * US, 32 * KIB])
_LOWEST, _HIGHEST = math.log(1e-10), math.log(GIB)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveFit:
    """Fitted constants, and |predicted / measured - 1| on the cells that they have not seen."""

    constants: CollectiveConstants
    points: int
    held_out: tuple[Point, ...]
    errors: tuple[float, ...]

    @property
    def median_error(self) -> float:
        """Median of the held-out errors."""
        return float(np.median(self.errors))

    @property
    def p90_error(self) -> float:
        """90th percentile of the held-out errors."""
        return float(np.percentile(self.errors, 90))


def fit_collectives(table: pd.DataFrame, links: Links, *, seed: int = 0) -> CollectiveFit:
    """Return constants fitted to the single-node rows of a table of measured collectives.

    Log residuals with a soft loss, one collective at a time, then the residual table. `links`
    gives the nominal bandwidth and the constants to start from, which stay where the table has
    no rows of a collective. A random fifth of the cells is left out and only judges.

    Raises:
        InputError: a column is missing, or the rows are not of one accelerator.
    """
    kept, held_out = split(read_points(table), seed)
    links = without_residual(links)
    for collective in (*_RINGS, Collective.ALL_TO_ALL):
        points = [point for point in kept if point.collective is collective]
        if points:
            links = with_constants(links, _fit_one(collective, points, links))
    curves = residual_curves(kept, links)
    links = with_constants(links, links.constants.model_copy(update={"residual": curves}))
    errors = tuple(abs(math.expm1(error)) for error in log_errors(held_out, links))
    return CollectiveFit(
        constants=links.constants, points=len(kept), held_out=held_out, errors=errors
    )


def without_residual(links: Links) -> Links:
    """Return the links with the formulas alone, not corrected by measured points."""
    return with_constants(links, links.constants.model_copy(update={"residual": ()}))


def log_errors(points: Sequence[Point], links: Links) -> list[float]:
    """Return log(predicted / measured) of each point, with the residual table of `links`."""
    return [log_error(point, links) for point in points]


def _fit_one(collective: Collective, points: Sequence[Point], links: Links) -> CollectiveConstants:
    constants = links.constants
    if collective is Collective.ALL_TO_ALL:
        return _least(points, links, _PAIRWISE_START, lambda x: _pairwise(constants, x))
    if collective is not Collective.ALL_REDUCE:
        return _least(points, links, _RING_START, lambda x: _ring(constants, collective, x))
    return _fit_all_reduce(points, links)


def _fit_all_reduce(points: Sequence[Point], links: Links) -> CollectiveConstants:
    """Return a ring, joined with the switch where it reduces and large groups were measured."""
    constants = links.constants
    if not links.in_network_reduction:
        constants = constants.model_copy(update={"nvls": None})
    if not links.in_network_reduction or not any(map(in_switch, points)):
        return _least(
            points, links, _RING_START, lambda x: _ring(constants, Collective.ALL_REDUCE, x)
        )
    start = np.concatenate([_RING_START, _NVLS_START])
    return _least(points, links, start, lambda x: _ring_and_nvls(constants, x))


def _least(
    points: Sequence[Point], links: Links, start: _Floats, rebuild: _Rebuild
) -> CollectiveConstants:
    weights = np.array([LARGE_WEIGHT if p.payload >= LARGE else 1.0 for p in points])

    def residuals(values: _Floats) -> _Floats:
        trial = with_constants(links, rebuild(values))
        switch = trial.constants.nvls is not None
        errors = [log_error(p, trial, "nvls" if switch and in_switch(p) else None) for p in points]
        weighted: _Floats = weights * np.array(errors)
        return weighted

    found = least_squares(
        residuals,
        start,
        bounds=(np.full(len(start), _LOWEST), np.full(len(start), _HIGHEST)),
        loss="soft_l1",
        f_scale=SOFT,
        max_nfev=100,
    )
    return rebuild(found.x)


def in_switch(point: Point) -> bool:
    """Return whether a point is large enough that a switch that reduces certainly does it."""
    large = point.ranks >= NVLS_FROM and point.payload >= _NVLS_BULK
    return large and point.collective is Collective.ALL_REDUCE


def log_error(point: Point, links: Links, algorithm: str | None = None) -> float:
    """Return log(predicted / measured) of a point, by the fastest algorithm or the named one."""
    request = Request(collective=point.collective, payload=point.payload, group=point.group)
    modelled = fastest_plan(request, links, algorithm).seconds
    return math.log(modelled / point.seconds) + log_residual(request, links)


def _ring(
    constants: CollectiveConstants, collective: Collective, logs: _Floats
) -> CollectiveConstants:
    names = tuple(RingConstants.model_fields)
    values = dict(zip(names, np.exp(logs).tolist(), strict=True))
    return constants.model_copy(update={collective.value: RingConstants(**values)})


def _ring_and_nvls(constants: CollectiveConstants, logs: _Floats) -> CollectiveConstants:
    start, efficiency = np.exp(logs[-2:]).tolist()
    nvls = NvlsConstants(start=start, efficiency=efficiency, min_ranks=NVLS_FROM)
    ring = _ring(constants, Collective.ALL_REDUCE, logs[:-2])
    return ring.model_copy(update={"nvls": nvls})


def _pairwise(constants: CollectiveConstants, logs: _Floats) -> CollectiveConstants:
    """Return all-to-all from its logs, and send/recv as the message to one peer of it."""
    names = tuple(PairwiseConstants.model_fields)
    pairs = PairwiseConstants(**dict(zip(names, np.exp(logs).tolist(), strict=True)))
    single = SendRecvConstants(start=pairs.start + pairs.peer_latency, efficiency=pairs.efficiency)
    return constants.model_copy(update={"all_to_all": pairs, "send_recv": single})


def with_constants(links: Links, constants: CollectiveConstants) -> Links:
    """Return the links with other constants."""
    return replace(links, constants=constants)
