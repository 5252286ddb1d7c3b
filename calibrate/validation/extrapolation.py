"""From the collectives of 2 to 4 nodes to those of more: fitted on the few, judged on the rest.

The fit is that of `traincast calibrate fit`. Shipped constants of the network saw all nodes of
these series, so a fit must not be helped by where it starts: it is made from several beliefs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import assert_never

from calibrate.collective_points import Point
from calibrate.fit_latency import predict_alone
from calibrate.fit_network import fit_network
from calibrate.validation.collective_series import FEW, Series, read_series
from calibrate.validation.metrics import statistics_of
from calibrate.validation.records import Pair, Statistics
from simulator.cost.collectives.request import links_of
from simulator.hardware.profile import Profile
from simulator.units import MIB

LIMIT = 0.10
"""The median error that extrapolations to 256 accelerators should keep."""
LATENCY_BOUND = 32 * MIB
"""Bytes of a message up to which latencies and the filling of pipelines are much of the time."""
_OFF = 3.0
"""Factor by which a belief is moved: more than e, the spread that a fit allows an assumed one."""
_SEEN = ("packet_factor", "packet_bytes", "fill", "fill_bytes")
"""Network constants whose shipped values were fitted to points of these series, large ones too."""
_AMOUNTS = ("packet_factor", "fill")
"""Of them, those that make an effect; a fit leaves one that is 0 as it is."""


class Start(StrEnum):
    """What a fit is told of the network before it sees a point."""

    SHIPPED = "shipped"
    """The profile as it is."""
    THIRD = "a third"
    """A third of the constants that were fitted to these series."""
    THRICE = "three times"
    """Three times them."""
    NOTHING = "nothing"
    """Neither packets nor filling: hops have a latency, and links a rate, that is all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extrapolation:
    """What was fitted to few nodes of a series, beside the points of more nodes."""

    series: str
    start: Start
    fitted_nodes: tuple[int, ...]
    fitted_points: int
    judged: tuple[Point, ...]
    """No point of these was fitted."""
    predicted: tuple[float, ...]
    """Seconds of each judged point."""

    def statistics(self, *, nodes: int | None = None, up_to: float = inf) -> Statistics | None:
        """Return the errors of the judged points, of one number of nodes, of small messages."""
        chosen = [
            Pair(measured=point.seconds, predicted=seconds)
            for point, seconds in zip(self.judged, self.predicted, strict=True)
            if nodes in (None, point.group.domains) and point.payload <= up_to
        ]
        return statistics_of(chosen)

    @property
    def nodes(self) -> tuple[int, ...]:
        """Numbers of nodes that are judged, rising."""
        return tuple(sorted({point.group.domains for point in self.judged}))


def extrapolations(folder: Path) -> tuple[Extrapolation, ...]:
    """Return every series of a folder extrapolated from every start."""
    return tuple(extrapolate(series, start) for series in read_series(folder) for start in Start)


def extrapolate(series: Series, start: Start) -> Extrapolation:
    """Return the forecasts of the larger numbers of nodes of a series by a fit to the smaller."""
    last = max(nodes for nodes in series.nodes[:-1] if nodes <= FEW)
    few, judged = series.up_to(last), series.beyond(last)
    fitted = fit_network(few, starting(series.machine, start)).profile
    return Extrapolation(
        series=series.name,
        start=start,
        fitted_nodes=tuple(nodes for nodes in series.nodes if nodes <= last),
        fitted_points=len(few),
        judged=judged,
        predicted=tuple(predict_alone(judged, links_of(fitted)).tolist()),
    )


def starting(machine: Profile, start: Start) -> Profile:
    """Return the machine with what a fit is told of its network."""
    collectives = machine.constants.collectives
    network = collectives.network
    moved = {name: getattr(network, name) * _factor(name, start) for name in _SEEN}
    told = collectives.model_copy(update={"network": network.model_copy(update=moved)})
    constants = machine.constants.model_copy(update={"collectives": told})
    return machine.model_copy(update={"constants": constants})


def _factor(name: str, start: Start) -> float:
    """Return what a constant is multiplied by."""
    match start:
        case Start.SHIPPED:
            return 1.0
        case Start.THIRD:
            return 1.0 / _OFF
        case Start.THRICE:
            return _OFF
        case Start.NOTHING:
            return 0.0 if name in _AMOUNTS else 1.0
        case _:
            assert_never(start)
