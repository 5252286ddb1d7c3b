"""Layers over the stages of a pipeline whose machines differ: as even in time as memory allows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def balanced_layers(
    layers: FloatArray, ends: Sequence[float], most: Sequence[int] | None = None
) -> tuple[int, ...] | None:
    """Return the layers of each stage, in order, whose slowest stage is fastest; None for none.

    `layers` is (stages, layers): the seconds of each layer on each stage. `ends[s]` is what stage s
    takes beside its layers (embedding, head), and `most[s]` how many layers its memory holds. Every
    stage has one layer or more. Of splits with equally fast slowest stages the one with the least
    sum of squared times is taken, where the others are most even.

    Exact, where the time of a stage is the sum of its layers' times and `ends`: a split's slowest
    stage is the slower of the last one and of the best split of the layers before it, so that
    best[s][j] = min over i of max(best[s - 1][i], time of stage s with layers i to j - 1); and with
    all stages at most at that time, sums of squares add up in the same way.

    >>> balanced_layers(np.array([[1.0] * 9, [2.0] * 9]), (0.0, 0.0))
    (6, 3)
    >>> balanced_layers(np.array([[1.0] * 9, [2.0] * 9]), (0.0, 0.0), (5, 9))
    (5, 4)
    """
    stages, count = layers.shape
    taken = [_times(layers[s], ends[s], count if most is None else most[s]) for s in range(stages)]
    slowest = float(_best(taken, np.maximum)[0][-1])
    if not np.isfinite(slowest):
        return None
    squares = [np.where(times <= slowest, times**2, np.inf) for times in taken]
    return _split(_best(squares, np.add)[1], count)


def _times(layers: FloatArray, end: float, most: int) -> FloatArray:
    """Return (count + 1, count + 1) the time of a stage with layers i to j - 1; inf for none."""
    before = np.concatenate(([0.0], np.cumsum(layers)))
    held = np.arange(len(before))[None, :] - np.arange(len(before))[:, None]
    times = before[None, :] - before[:, None] + end
    return np.where((held >= 1) & (held <= most), times, np.inf)


def _best(
    taken: Sequence[FloatArray], joined: np.ufunc
) -> tuple[FloatArray, list[NDArray[np.intp]]]:
    """Return the least joined value of all stages by the layers taken, and where each one began."""
    count = len(taken[0])
    best = np.full(count, np.inf)
    best[0] = 0.0
    began = []
    for times in taken:
        values = joined(best[:, None], times)
        first = values.argmin(axis=0)
        best = values[first, np.arange(count)]
        began.append(first)
    return best, began


def _split(began: Sequence[NDArray[np.intp]], count: int) -> tuple[int, ...]:
    """Return the layers of each stage from where each began, last stage first."""
    found, end = [], count
    for first in reversed(began):
        found.append(end - int(first[end]))
        end = int(first[end])
    return tuple(reversed(found))
