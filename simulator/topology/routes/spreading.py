"""Which of several equally short paths bytes take over a fabric."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from simulator.topology.graph import IntArray
from simulator.topology.routes.arcs import BoolArray, Flow, Pick, take_all

_MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31
_GOLDEN = 0x9E3779B97F4A7C15
"""Shifts and factors of splitmix64. Source: Steele, Lea, Flood 2014, "Fast splittable pseudorandom
number generators", with the constants of Vigna's splitmix64.c."""
_MODULUS = 2**64


class Spreading(StrEnum):
    """How bytes spread over the shortest paths of a fabric."""

    IDEAL = "ideal"
    """Over all of them, packet by packet: at each device in proportion to the bandwidth of the
    links that lead on."""
    HASH = "hash"
    """ECMP: all bytes of a pair of accelerators take one link at each switch, by a hash of the
    pair, the switch and a seed."""
    DIMENSION_ORDER = "dimension-order"
    """Of a torus: along its first dimension first, then the second, ...; both ways of a ring half
    and half where they are equally long."""


def pick_of(spreading: Spreading, pair: IntArray, dimension: IntArray, seed: int) -> Pick:
    """Return which arcs flows take, where `pair` names the two ends of each row of a flow.

    `dimension` is (arcs,) the dimension of a torus that each runs along.
    """
    match spreading:
        case Spreading.IDEAL:
            return take_all
        case Spreading.HASH:
            return lambda flow, item, _: _hashed(pair[flow.row], flow.place, item, seed)
        case Spreading.DIMENSION_ORDER:
            return lambda flow, item, arc: _lowest(dimension[arc], item, flow)
    assert_never(spreading)


def _hashed(pair: IntArray, device: IntArray, item: IntArray, seed: int) -> BoolArray:
    """Pick one arc of each entry."""
    counts = np.bincount(item, minlength=len(pair))
    first = np.cumsum(counts) - counts
    salt = np.full(1, seed % _MODULUS, dtype=np.uint64)
    key = _mixed(_mixed(_mixed(salt) + pair.astype(np.uint64)) + device.astype(np.uint64))
    chosen = (key % np.maximum(counts, 1).astype(np.uint64)).astype(np.intp)
    picked: BoolArray = np.arange(len(item)) == (first + chosen)[item]
    return picked


def _mixed(key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return what splitmix64 draws in the state `key`."""
    key = key + np.uint64(_GOLDEN)
    for shift, factor in _MIX:
        key = (key ^ (key >> np.uint64(shift))) * np.uint64(factor)
    return key ^ (key >> np.uint64(_LAST_SHIFT))


def _lowest(dimension: IntArray, item: IntArray, flow: Flow) -> BoolArray:
    """Pick the arcs of each entry along the lowest dimension that any of them runs along."""
    least = np.full(len(flow.row), np.iinfo(np.intp).max)
    np.minimum.at(least, item, dimension)
    picked: BoolArray = dimension == least[item]
    return picked
