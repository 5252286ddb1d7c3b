"""Sizes spread evenly over logarithms, so that any first part of them is spread evenly too."""

from __future__ import annotations

import math
from collections.abc import Iterator

_BASES = (2, 3, 5, 7, 11)


def spread_points(dimensions: int) -> Iterator[tuple[float, ...]]:
    """Yield points of the unit cube without end: the Halton sequence.

    Every prefix covers the cube evenly, so that a run that is cut still has all sizes.
    Source: Halton 1960, "On the efficiency of certain quasi-random sequences of points".

    >>> points = spread_points(2)
    >>> next(points), next(points)
    ((0.5, 0.333...), (0.25, 0.666...))
    """
    bases = _BASES[:dimensions]
    assert len(bases) == dimensions, dimensions
    index = 0
    while True:
        index += 1
        yield tuple(_radical_inverse(index, base) for base in bases)


def size_at(share: float, least: int, most: int, multiple: int) -> int:
    """Return the size at `share` (0 to 1) of the way from `least` to `most`, in logarithms.

    >>> size_at(0.5, 64, 4096, 64), size_at(0.0, 64, 4096, 64)
    (512, 64)
    """
    exact = least * math.exp(share * math.log(most / least))
    return max(multiple, round(exact / multiple) * multiple)


def sizes_by_factor(least: float, most: float, factor: int, between: int = 0) -> list[float]:
    """Return sizes from `least` up to `most`, x `factor` each, or those `between` two of them.

    >>> sizes_by_factor(1, 64, 4), sizes_by_factor(1, 64, 4, between=1)
    ([1.0, 4.0, 16.0, 64.0], [2.0, 8.0, 32.0])
    """
    coarse = [float(least)]
    while coarse[-1] * factor <= most:
        coarse.append(coarse[-1] * factor)
    if not between:
        return [size for size in coarse if size <= most]
    steps = [factor ** (step / (between + 1)) for step in range(1, between + 1)]
    return [size * step for size in coarse for step in steps if size * step <= most]


def _radical_inverse(index: int, base: int) -> float:
    """Return the digits of `index` mirrored at the point: 6 = 110 in base 2 is 0.011."""
    value, digit = 0.0, 1.0
    while index:
        digit /= base
        index, last = divmod(index, base)
        value += last * digit
    return value
