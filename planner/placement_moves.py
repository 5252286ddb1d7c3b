"""Orders of ranks to begin from, and exchanges that lead from one to the next."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np

from simulator.parallel.layout import Axis, ParallelLayout
from simulator.topology.graph import IntArray

_SEED = 0
"""Of the exchanges that are tried where there are too many to try all."""


def axis_orders(layout: ParallelLayout) -> dict[str, IntArray]:
    """Return the accelerator of each rank for each order of the axes, innermost first.

    "tp-cp-dp-pp" puts ranks one after another; "tp-pp-cp-dp" puts the stages of a pipeline next to
    each other, as Megatron-LM's --use-tp-pp-dp-mapping. Orders that differ only in axes of size 1
    come once.

    >>> axis_orders(ParallelLayout(tp=2, pp=2))
    {'tp-pp': array([0, 1, 2, 3]), 'pp-tp': array([0, 2, 1, 3])}
    """
    sizes = {
        Axis.TENSOR: layout.tp,
        Axis.CONTEXT: layout.cp,
        Axis.DATA: layout.dp,
        Axis.PIPELINE: layout.pp,
    }
    axes = [axis for axis, size in sizes.items() if size > 1]
    place = np.unravel_index(
        np.arange(layout.world_size), [sizes[axis] for axis in axes] or [1], order="F"
    )
    return {
        "-".join(axes[number] for number in order): np.ravel_multi_index(
            [place[number] for number in order],
            [sizes[axes[number]] for number in order],
            order="F",
        ).astype(np.intp)
        for order in permutations(range(len(axes)))
        if axes
    } or {"": np.zeros(1, dtype=np.intp)}


def exchanges(units: int, width: int, most: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield accelerators that change places with others: those of two units, then single ones.

    Of either kind all are yielded, or `most` of them chosen at random, always the same ones.
    """
    inside = np.arange(width)
    for one, other in _pairs(units, most):
        yield one * width + inside, other * width + inside
    if width > 1:
        for one, other in _pairs(units * width, most):
            yield np.array([one]), np.array([other])


def exchanged(places: IntArray, some: IntArray, others: IntArray) -> IntArray:
    """Return places after the ranks on some accelerators and those on others have changed places.

    >>> exchanged(np.array([3, 1, 0]), np.array([0, 1]), np.array([2, 3]))
    array([1, 3, 2])
    """
    goes = np.arange(max(places.max(), some.max(), others.max()) + 1)
    goes[some], goes[others] = others, some
    return goes[places]


def _pairs(count: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of different numbers below `count`, the lower one first."""
    if count * (count - 1) // 2 <= most:
        yield from combinations(range(count), 2)
        return
    drawn = np.random.default_rng(_SEED).integers(0, count, size=(most, 2))
    for one, other in np.sort(drawn, axis=1).tolist():
        if one < other:
            yield one, other
