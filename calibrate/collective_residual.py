"""The residual table of a fit: what the formulas leave, at the measured points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Literal, cast

import numpy as np

from calibrate.collective_points import Point
from calibrate.log_fit import Array
from simulator.cost.collectives.request import Links, Request
from simulator.cost.collectives.select import fastest_plan
from simulator.hardware.collective_constants import ResidualCurve

_LIMIT = math.log(1.5)
"""A formula that is further off is wrong; the table does not hide it."""
_SAMPLES = 16
_SLACK = 0.8
"""Share of the formula's own rise that a curve may take back; groups in between rise less."""
_DIGITS = 4

_Op = Literal["all_reduce", "all_gather", "reduce_scatter", "alltoall"]


def residual_curves(points: Sequence[Point], links: Links) -> tuple[ResidualCurve, ...]:
    """Return log(measured / modelled) of each collective and group size, at its payloads.

    The corrected time still rises with the payload: a point slower than a larger payload (a
    disturbed measurement, or a library that changes its protocol late) is pulled down to it.
    """
    ordered = sorted(points, key=lambda p: (p.collective, p.ranks, p.payload))
    return tuple(
        _curve(list(cell), links)
        for _, cell in groupby(ordered, key=lambda p: (p.collective, p.ranks))
    )


def with_octaves(points: Sequence[Point], links: Links) -> tuple[Point, ...]:
    """Return the points and one an octave between them, where a table has gaps of several octaves.

    In between, log(measured / modelled) is linear in the log of the payload, and the time stays
    between those of its neighbours. A point slower than a larger payload counts as disturbed:
    what disturbs a measurement makes it slower.
    """
    ordered = sorted(points, key=lambda p: (p.collective, p.ranks, p.payload))
    return tuple(
        point
        for _, cell in groupby(ordered, key=lambda p: (p.collective, p.ranks))
        for point in _filled(list(cell), links)
    )


def _filled(cell: list[Point], links: Links) -> list[Point]:
    payload = np.array([point.payload for point in cell])
    modelled = np.array([_model_seconds(point, point.payload, links) for point in cell])
    ratio = np.clip(np.log([point.seconds for point in cell] / modelled), -_LIMIT, _LIMIT)
    measured = _from_below(modelled * np.exp(ratio))
    octaves = max(1, round(float(np.log2(payload[-1] / payload[0]))))
    grid = payload[0] * (payload[-1] / payload[0]) ** (np.arange(octaves + 1) / octaves)
    grid = np.unique(np.concatenate([np.round(grid), payload]))
    between = np.interp(np.log(grid), np.log(payload), np.log(measured / modelled))
    seconds = np.array([_model_seconds(cell[0], size, links) for size in grid.tolist()])
    lower = measured[np.searchsorted(payload, grid, "right") - 1]
    upper = measured[np.minimum(np.searchsorted(payload, grid), len(cell) - 1)]
    seconds = _from_below(np.clip(seconds * np.exp(between), lower, upper))
    return [
        replace(cell[0], payload=size, seconds=time)
        for size, time in zip(grid.tolist(), seconds.tolist(), strict=True)
    ]


def _from_below(rising: Array) -> Array:
    """Return the largest values that rise and are nowhere above the given ones."""
    below: Array = np.minimum.accumulate(rising[::-1])[::-1]
    return below


def _curve(cell: list[Point], links: Links) -> ResidualCurve:
    modelled = [_model_seconds(point, point.payload, links) for point in cell]
    ratios = [
        max(-_LIMIT, min(_LIMIT, math.log(point.seconds / seconds)))
        for point, seconds in zip(cell, modelled, strict=True)
    ]
    for index in reversed(range(len(cell) - 1)):
        fall = _fall_allowed(cell[index], cell[index + 1], links)
        ratios[index] = min(ratios[index], ratios[index + 1] + fall)
    return ResidualCurve(
        op=cast(_Op, cell[0].collective.value),
        ranks=cell[0].ranks,
        payload=tuple(point.payload for point in cell),
        log_ratio=tuple(round(ratio, _DIGITS) for ratio in ratios),
    )


def _fall_allowed(left: Point, right: Point, links: Links) -> float:
    """Return by how much the curve may fall so that the time rises all the way between points."""
    ratio = right.payload / left.payload
    samples = [
        math.log(_model_seconds(left, left.payload * ratio ** (step / _SAMPLES), links))
        for step in range(_SAMPLES + 1)
    ]
    rises = [high - low for low, high in pairwise(samples)]
    return max(0.0, _SLACK * _SAMPLES * min(rises) - 2 * 10.0**-_DIGITS)


def _model_seconds(point: Point, payload: float, links: Links) -> float:
    request = Request(collective=point.collective, payload=payload, group=point.group)
    return fastest_plan(request, links).seconds
