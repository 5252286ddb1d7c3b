"""Pairs of accelerators cut into legs: inside one unit, over the fabric, inside the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.topology.graph import FloatArray, IntArray
from simulator.topology.routes.arcs import BoolArray
from simulator.topology.routes.ports import NO_PORT
from simulator.topology.routes.sides import Units


@dataclass(frozen=True, kw_only=True, eq=False)
class Inner:
    """Legs inside units, as columns."""

    pair: IntArray
    unit: IntArray
    route: IntArray
    """Number of the route; see `Inside`."""
    share: FloatArray
    """Part of the pair's bytes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lanes:
    """Legs between units, as columns; a pair whose receiver has several ports has as many lanes."""

    pair: IntArray
    from_unit: IntArray
    to_unit: IntArray
    leave: IntArray
    """Port of the sender's unit; `NO_PORT` where nothing connects the two."""
    enter: IntArray
    """Port of the receiver's unit."""
    share: FloatArray
    """Part of the pair's bytes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ends:
    """Pairs of different accelerators, each as its unit and its place in it."""

    from_unit: IntArray
    sender: IntArray
    to_unit: IntArray
    receiver: IntArray

    @classmethod
    def of(cls, source: IntArray, target: IntArray, width: int) -> Ends:
        """Return the ends of pairs where a unit has `width` accelerators."""
        from_unit, sender = np.divmod(source, width)
        to_unit, receiver = np.divmod(target, width)
        return cls(from_unit=from_unit, sender=sender, to_unit=to_unit, receiver=receiver)


def legs(units: Units, ends: Ends) -> tuple[tuple[Inner, ...], Lanes]:
    """Return the legs of pairs: those inside units, and the lanes between them.

    Accelerators of one unit that nothing joins inside it meet over the fabric. Where lanes have no
    port all legs inside units are left out.
    """
    inside = _inside(units, ends)
    lanes = _lanes(units, ends, np.flatnonzero(~inside))
    if (lanes.leave == NO_PORT).any():
        return (), lanes
    pairs, count = np.flatnonzero(inside), units.insides[0].ends
    accelerator, port = units.insides[0].accelerator, units.insides[0].port
    start, end = accelerator[ends.sender], accelerator[ends.receiver]
    within = Inner(
        pair=pairs,
        unit=ends.from_unit[pairs],
        route=start[pairs] * count + end[pairs],
        share=np.ones(len(pairs)),
    )
    out = Inner(
        pair=lanes.pair,
        unit=lanes.from_unit,
        route=start[lanes.pair] * count + port[lanes.leave],
        share=lanes.share,
    )
    into = Inner(
        pair=lanes.pair,
        unit=lanes.to_unit,
        route=port[lanes.enter] * count + end[lanes.pair],
        share=lanes.share,
    )
    return (within, out, into) if len(lanes.pair) else (within,), lanes


def _inside(units: Units, ends: Ends) -> BoolArray:
    """Return which pairs meet inside a unit."""
    inside: BoolArray = ends.from_unit == ends.to_unit
    for number, kind in enumerate(units.insides):
        mine = np.flatnonzero(inside & (units.inside_of[ends.from_unit] == number))
        start, end = kind.accelerator[ends.sender[mine]], kind.accelerator[ends.receiver[mine]]
        inside[mine] = np.isfinite(kind.cost[start, end])
    return inside


def _lanes(units: Units, ends: Ends, pairs: IntArray) -> Lanes:
    """Return the lanes of pairs that meet over the fabric."""
    counts = np.array([len(ports) for ports in units.own])[ends.receiver[pairs]]
    pair = np.repeat(pairs, counts)
    lane = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
    from_unit, to_unit = ends.from_unit[pair], ends.to_unit[pair]
    leave = np.full(len(pair), NO_PORT, dtype=np.intp)
    enter = leave.copy()
    if units.sides:
        kind = units.side_of[from_unit] * len(units.sides) + units.side_of[to_unit]
        for both in np.unique(kind):
            choice = units.choice(*divmod(int(both), len(units.sides)))
            mine = np.flatnonzero(kind == both)
            seat = ends.sender[pair[mine]], ends.receiver[pair[mine]], lane[mine]
            leave[mine], enter[mine] = choice.leave[seat], choice.enter[seat]
    return Lanes(
        pair=pair,
        from_unit=from_unit,
        to_unit=to_unit,
        leave=leave,
        enter=enter,
        share=1.0 / np.repeat(counts, counts),
    )
