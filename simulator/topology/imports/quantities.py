"""Cables and quantities as a topology file has them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from simulator.topology.graph import Cable
from simulator.units import GB, US, Dimension, format_quantity, parse_quantity

Table = dict[str, Any]


def cable_tables(cables: Iterable[Cable]) -> list[Table]:
    """Return one table for each pair of devices, with the bandwidth of all cables between them."""
    return [_cable_table(cable) for cable in _merged(cables)]


def _merged(cables: Iterable[Cable]) -> list[Cable]:
    """Return one cable for each pair of devices, as wide as all between them."""
    found: dict[frozenset[str], Cable] = {}
    for cable in cables:
        pair = frozenset((cable.one, cable.other))
        before = found.get(pair)
        wide = cable.bandwidth + (before.bandwidth if before else 0.0)
        late = max(cable.latency, before.latency if before else 0.0)
        found[pair] = replace(before or cable, bandwidth=wide, latency=late)
    return list(found.values())


def _cable_table(cable: Cable) -> Table:
    return {
        "ends": [cable.one, cable.other],
        **quantity("bandwidth", cable.bandwidth),
        **(quantity("latency", cable.latency, Dimension.TIME) if cable.latency else {}),
    }


def quantity(
    key: str, value: float | None, dimension: Dimension = Dimension.BANDWIDTH
) -> dict[str, str]:
    """Return a key with its quantity, or nothing where that is None."""
    return {} if value is None else {key: shown(value, dimension)}


def shown(value: float, dimension: Dimension) -> str:
    """Return a quantity in the unit that people write, if that reads back to exactly the value."""
    unit, scale = ("us", US) if dimension is Dimension.TIME else ("GB/s", GB)
    text = f"{value / scale:.12g} {unit}"
    exact = "e" not in text and parse_quantity(text, dimension) == value
    return text if exact else format_quantity(value, dimension)
