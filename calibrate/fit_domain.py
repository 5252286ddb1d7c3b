"""Collectives in one scale-up domain from a few points: formulas with priors, then a table.

Sixty points (all-reduce, all-gather, all-to-all; 2 ranks and all; payloads x4) are enough: what
the formulas leave open is held by the base profile, the three rings hold each other, and what the
formulas leave over is a table that is interpolated over payloads and group sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from calibrate.collective_points import Point
from calibrate.collective_residual import residual_curves, with_octaves
from calibrate.domain_priors import free_of, free_switch, ring_prior
from calibrate.fit_collectives import (
    LARGE,
    LARGE_WEIGHT,
    NVLS_FROM,
    in_switch,
    log_error,
    with_constants,
    without_residual,
)
from calibrate.fit_kernels import four_digits, rounded, with_values
from calibrate.log_fit import Array, Found, FreeConstant, find
from simulator.cost.collectives.request import Links
from simulator.files import FileRecord
from simulator.hardware.collective_constants import (
    CollectiveConstants,
    NvlsConstants,
    RingConstants,
    SendRecvConstants,
)
from simulator.parallel.groups import Collective
from simulator.units import US

RINGS = (Collective.ALL_GATHER, Collective.ALL_REDUCE, Collective.REDUCE_SCATTER)
"""The first that was measured leads: its constants are the priors of the others."""
_LIKE_LEADER = 0.1
"""Spread of log(constant) of a ring around the leader's: start, step and efficiency of all-reduce
and all-gather differ by at most 7 % on the shipped A100, H100 and B200."""
_NVLS = NvlsConstants(start=42 * US, efficiency=0.55, min_ranks=NVLS_FROM)
"""Where a fit starts whose base has none: the geometric means of the shipped H100 and B200."""
_Rebuild = Callable[[dict[str, float]], CollectiveConstants]


def fit_domain(
    points: Sequence[Point], links: Links, spread: float
) -> tuple[Links, dict[str, float]]:
    """Return the links with constants fitted to the points, and the uncertainty of each constant.

    `links` have the base's constants, believed within `spread` (of their logs). A ring that was not
    measured takes the leader's constants, times what the base has between the two.
    """
    base = links.constants
    links, uncertainty = without_residual(links), dict[str, float]()
    measured = {point.collective for point in points}
    leader = next((ring for ring in RINGS if ring in measured), None)
    if leader is not None:
        order = [leader, *(ring for ring in RINGS if ring is not leader)]
        for ring in order:
            prior = ring_prior(ring, leader, base, links.constants)
            own = [point for point in points if point.collective is ring]
            width = spread if ring is leader else _LIKE_LEADER
            links, found = _fit_ring(ring, own, links, prior, width)
            uncertainty |= found
    for fit in (_fit_all_to_all, _fit_send_recv):
        links, found = fit(points, links, spread)
        uncertainty |= found
    curves = residual_curves(with_octaves(_with_tables(points), links), links)
    constants = links.constants.model_copy(update={"residual": curves})
    return with_constants(links, constants), uncertainty


def _fit_ring(
    ring: Collective, points: Sequence[Point], links: Links, prior: RingConstants, spread: float
) -> tuple[Links, dict[str, float]]:
    constants = links.constants
    if not points:
        changed = constants.model_copy(update={ring.value: rounded(prior, prior.model_dump())})
        return with_constants(links, changed), {}
    free = free_of(prior, spread)
    reduces = ring is Collective.ALL_REDUCE
    if reduces and not links.in_network_reduction:
        constants = constants.model_copy(update={"nvls": None})
    switch = constants.nvls or _NVLS
    if reduces and links.in_network_reduction and any(map(in_switch, points)):
        free |= {f"nvls.{name}": value for name, value in free_switch(switch, spread).items()}

    def rebuild(values: dict[str, float]) -> CollectiveConstants:
        own = {name: value for name, value in values.items() if "." not in name}
        update: dict[str, FileRecord] = {ring.value: with_values(prior, own)}
        inner = {name.removeprefix("nvls."): value for name, value in values.items() if "." in name}
        if inner:
            update["nvls"] = with_values(switch, inner)
        return constants.model_copy(update=update)

    found = _least(points, links, free, rebuild)
    return with_constants(links, rebuild(four_digits(found.values))), _named(ring.value, found)


def _fit_all_to_all(
    points: Sequence[Point], links: Links, spread: float
) -> tuple[Links, dict[str, float]]:
    own = [point for point in points if point.collective is Collective.ALL_TO_ALL]
    if not own:
        return links, {}
    constants, prior = links.constants, links.constants.all_to_all

    def rebuild(values: dict[str, float]) -> CollectiveConstants:
        pairs = with_values(prior, values)
        single = {"start": pairs.start + pairs.peer_latency, "efficiency": pairs.efficiency}
        message = with_values(constants.send_recv, single)
        return constants.model_copy(update={"all_to_all": pairs, "send_recv": message})

    found = _least(own, links, free_of(prior, spread), rebuild)
    return with_constants(links, rebuild(four_digits(found.values))), _named("all_to_all", found)


def _fit_send_recv(
    points: Sequence[Point], links: Links, spread: float
) -> tuple[Links, dict[str, float]]:
    own = [point for point in points if point.collective is Collective.SEND_RECV]
    if not own:
        return links, {}
    constants = links.constants
    prior: SendRecvConstants = constants.send_recv

    def rebuild(values: dict[str, float]) -> CollectiveConstants:
        return constants.model_copy(update={"send_recv": with_values(prior, values)})

    found = _least(own, links, free_of(prior, spread), rebuild)
    return with_constants(links, rebuild(four_digits(found.values))), _named("send_recv", found)


def _least(
    points: Sequence[Point], links: Links, free: dict[str, FreeConstant], rebuild: _Rebuild
) -> Found:
    weights = np.array([LARGE_WEIGHT if point.payload >= LARGE else 1.0 for point in points])
    switch = any(name.startswith("nvls.") for name in free)

    def log_errors(values: dict[str, float]) -> Array:
        trial = with_constants(links, rebuild(values))
        return np.array(
            [
                log_error(point, trial, "nvls" if switch and in_switch(point) else None)
                for point in points
            ]
        )

    return find(free, log_errors, weights)


def _named(block: str, found: Found) -> dict[str, float]:
    return {f"{block}.{name}": value for name, value in found.uncertainty.items()}


def _with_tables(points: Sequence[Point]) -> list[Point]:
    """Return the points that a residual table can correct, repeats of one as their median."""
    cells: dict[tuple[Collective, int, float], list[Point]] = {}
    for point in points:
        if point.collective in (*RINGS, Collective.ALL_TO_ALL):
            key = (point.collective, point.ranks, point.payload)
            cells.setdefault(key, []).append(point)
    return [
        replace(same[0], seconds=median(point.seconds for point in same)) for same in cells.values()
    ]
