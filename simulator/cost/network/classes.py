"""Classes of links that behave alike: equal capacity, and equal loads by everything that runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.cost.network.column import Column
from simulator.cost.plan import Load
from simulator.topology.graph import FloatArray, IntArray

_DIGITS = 10
"""Significant digits in which loads must agree; sums of the same shares differ in the last ones."""
_SEED = 20240229
_MOST_COMPARED = 512
"""Classes up to which those that can never be the fullest are looked for."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkClasses:
    """Classes by number, and what each column loads of them."""

    first: IntArray
    """(classes,) one link of each."""
    count: IntArray
    """(classes,) links of each."""
    capacity: FloatArray
    """(classes,) bytes/s of one link."""
    weights: FloatArray
    """(classes, columns) bytes on one link for each wire byte."""
    links: IntArray
    """Links that anything loads."""
    class_of: IntArray
    """(links,) the class of each of `links`."""

    def members(self, number: int) -> IntArray:
        """Return all links of a class."""
        found: IntArray = self.links[self.class_of == number]
        return found

    def load(self, column: int, kept: IntArray) -> Load | None:
        """Return what a column loads of the classes `kept`; None for nothing."""
        weights = self.weights[kept, column]
        loaded = np.flatnonzero(weights)
        if not len(loaded):
            return None
        return Load(
            links=tuple(int(number) for number in kept[loaded]),
            weights=tuple(float(weight) for weight in weights[loaded]),
        )


def classify(columns: Sequence[Column], capacity: FloatArray) -> LinkClasses:
    """Return the classes of all links that any column loads.

    Links are told apart by their capacity and by two random sums of their loads: two links that
    are loaded differently agree in both with a probability of nothing.

    >>> twice, once = (Column.of(np.array(loads)) for loads in ([2.0, 2.0, 0.0], [0.0, 0.0, 1.0]))
    >>> classify([twice, once], np.array([5.0, 5.0, 5.0])).count
    array([1, 2])
    """
    touched = np.unique(np.concatenate([column.links for column in columns] or [_NONE]))
    marks = np.random.default_rng(_SEED).uniform(1.0, 2.0, size=(2, len(columns)))
    sums = np.zeros((2, len(capacity)))
    for number, column in enumerate(columns):
        sums[:, column.links] += marks[:, number, None] * column.weights
    keys = _rounded(np.stack((capacity[touched], *sums[:, touched]), axis=1))
    _, first, class_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    ones = touched[first]
    return LinkClasses(
        first=ones,
        count=np.bincount(class_of.ravel(), minlength=len(first)),
        capacity=capacity[ones],
        weights=_weights(columns, ones),
        links=touched,
        class_of=class_of.ravel(),
    )


def contested(classes: LinkClasses, lanes: Sequence[int]) -> IntArray:
    """Return the classes on which flows can meet: loaded from several of `lanes`.

    There is one for each column; columns behind those with a lane meet nothing. Of classes that
    others hold up in everything they do, only those others are kept.
    """
    lane_of = np.unique(np.asarray(lanes, dtype=np.intp), return_inverse=True)[1]
    used = classes.weights[:, : len(lanes)] > 0
    several = np.zeros(len(classes.first), dtype=bool)
    lowest, highest = (np.full(len(several), value) for value in (len(lanes), -1))
    for column, lane in enumerate(lane_of):
        lowest[used[:, column]] = np.minimum(lowest[used[:, column]], lane)
        highest[used[:, column]] = np.maximum(highest[used[:, column]], lane)
    several = highest > lowest
    numbers = np.flatnonzero(several)
    if len(numbers) > _MOST_COMPARED:
        return numbers
    return _undominated(classes.weights[:, : len(lanes)], classes.capacity, numbers)


def _undominated(weights: FloatArray, capacity: FloatArray, numbers: IntArray) -> IntArray:
    """Return the classes of which no other is at least as full whatever runs."""
    fill = weights[numbers] / capacity[numbers, None]
    kept: list[int] = []
    for place in np.argsort(-fill.sum(axis=1), kind="stable"):
        if not any((fill[other] >= fill[place]).all() for other in kept):
            kept.append(int(place))
    return np.sort(numbers[kept])


def _weights(columns: Sequence[Column], links: IntArray) -> FloatArray:
    """Return (links, columns) the weight of each column on some links."""
    found = np.zeros((len(links), len(columns)))
    order = np.argsort(links)
    for number, column in enumerate(columns):
        place = np.searchsorted(column.links, links[order])
        inside = place < len(column.links)
        hit = np.zeros(len(links), dtype=bool)
        hit[inside] = column.links[place[inside]] == links[order][inside]
        found[order[hit], number] = column.weights[place[hit]]
    return found


def _rounded(values: FloatArray) -> FloatArray:
    """Return values with `_DIGITS` significant digits."""
    size = np.where(values > 0, np.floor(np.log10(np.where(values > 0, values, 1.0))), 0.0)
    scale = 10.0 ** (_DIGITS - 1 - size)
    rounded: FloatArray = np.round(values * scale) / scale
    return rounded


_NONE: IntArray = np.zeros(0, dtype=np.intp)
