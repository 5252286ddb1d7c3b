"""How many numbers the payload of a collective is, and how many each rank has of it."""

from __future__ import annotations

from calibrate.points import CollectivePoint
from simulator.errors import InputError, Problem
from simulator.files import nearest
from simulator.parallel.groups import Collective

ITEM_BYTES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2}
"""By the names of number formats that a collective is measured in."""
SHARED = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL)
"""Collectives whose payload is made of one equal part a rank."""


def elements_of(point: CollectivePoint) -> int:
    """Return the numbers that `point.bytes` are.

    >>> elements_of(CollectivePoint(collective=Collective.ALL_GATHER, ranks=4, nodes=1, bytes=64))
    16

    Raises:
        InputError: an unknown number format, or bytes that are no whole numbers of it for all.
    """
    if point.dtype not in ITEM_BYTES:
        rule = "is no number format that collectives are measured in"
        fix = nearest(point.dtype, list(ITEM_BYTES))
        raise InputError(_problem("dtype", point.dtype, rule, fix))
    unit = unit_bytes(point.collective, point.ranks, point.dtype)
    if point.bytes % unit:
        rule = f"{point.collective} over {point.ranks} ranks needs a multiple of {unit} bytes"
        near = max(unit, round(point.bytes / unit) * unit)
        raise InputError(_problem("bytes", f"{point.bytes:g}", rule, f"use {near}"))
    return round(point.bytes) // ITEM_BYTES[point.dtype]


def unit_bytes(collective: Collective, ranks: int, dtype: str = "float32") -> int:
    """Return the smallest payload; others are its multiples.

    >>> unit_bytes(Collective.ALL_GATHER, 6), unit_bytes(Collective.ALL_REDUCE, 6)
    (24, 4)
    """
    return ITEM_BYTES[dtype] * (ranks if collective in SHARED else 1)


def _problem(key: str, found: str, rule: str, fix: str) -> Problem:
    return Problem(where="point", key=key, found=found, rule=rule, fix=fix)
