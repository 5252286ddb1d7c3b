"""How much an order of ranks asks of the network, and what of it matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import numpy as np

from planner.placement_traffic import Demand
from simulator.parallel.layout import Axis
from simulator.topology.graph import FloatArray, IntArray
from simulator.topology.topology import Topology

_DIGITS = 9
"""Digits behind the first in which two scores must differ: those behind them are rounding."""


class Goal(StrEnum):
    """What a good order has little of."""

    BUSIEST_LINK = "busiest-link"
    """Seconds in which each axis, one after the other, is carried by its fullest link."""
    CROSS_TIER = "cross-tier"
    """Bytes on links between switches, those of each tier counted; then those that leave units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisScore:
    """What one axis puts on the network in a step."""

    axis: Axis
    seconds: float
    """In which its fullest link carries its bytes."""
    link: str
    """Name of that link."""
    leaving: float
    """Bytes that leave units."""
    crossing: float
    """Bytes on links between switches of the fabric: once for each that they pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementScore:
    """What all axes put on the network in a step."""

    axes: tuple[AxisScore, ...]
    link_seconds: float
    """Seconds that all links together are busy."""

    @property
    def seconds(self) -> float:
        """Seconds of the fullest links, the axes one after the other."""
        return sum(axis.seconds for axis in self.axes)

    @property
    def leaving(self) -> float:
        """Bytes that leave units."""
        return sum(axis.leaving for axis in self.axes)

    @property
    def crossing(self) -> float:
        """Bytes on links between switches."""
        return sum(axis.crossing for axis in self.axes)

    def key(self, goal: Goal) -> tuple[float, ...]:
        """Return what is to be made small, what matters most first."""
        match goal:
            case Goal.BUSIEST_LINK:
                return _rounded(self.seconds, self.link_seconds)
            case Goal.CROSS_TIER:
                return _rounded(self.crossing, self.leaving, self.seconds)
        assert_never(goal)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Order:
    """Places of ranks, and what they put on the network."""

    places: IntArray
    loads: dict[Axis, FloatArray]
    score: PlacementScore


def order_at(demand: Demand, places: IntArray) -> Order:
    """Return the order in which ranks stand in `places`."""
    loads = {axis: demand.loads(axis, places) for axis in demand.groups}
    return Order(places=places, loads=loads, score=score_of(demand.router.topology, loads))


def score_of(topology: Topology, loads: Mapping[Axis, FloatArray]) -> PlacementScore:
    """Return the score of the bytes that each axis puts on each link."""
    busy = np.divide(
        1.0, topology.capacity, where=topology.capacity > 0, out=np.zeros(topology.links)
    )
    return PlacementScore(
        axes=tuple(_axis_score(topology, axis, carried, busy) for axis, carried in loads.items()),
        link_seconds=float(sum(carried @ busy for carried in loads.values())),
    )


def _axis_score(topology: Topology, axis: Axis, carried: FloatArray, busy: FloatArray) -> AxisScore:
    seconds = carried * busy
    fullest = int(np.argmax(seconds))
    return AxisScore(
        axis=axis,
        seconds=float(seconds[fullest]),
        link=topology.link_name(fullest),
        leaving=float(carried[topology.first_up : topology.first_down].sum()),
        crossing=float(carried[topology.first_fabric :].sum()),
    )


def _rounded(*values: float) -> tuple[float, ...]:
    return tuple(float(f"{value:.{_DIGITS}e}") for value in values)
