"""Draws that are spread evenly: a Latin hypercube."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_UNIT_NORMAL = NormalDist()


def hypercube(random: np.random.Generator, draws: int, columns: int) -> NDArray[np.float64]:
    """Return unit normal draws, a column each: one from each of `draws` equally likely slices."""
    found = np.empty((draws, columns))
    quantile = np.vectorize(_UNIT_NORMAL.inv_cdf, otypes=[float])
    for column in range(columns):
        slices = random.permutation(draws) + random.random(draws)
        found[:, column] = quantile(np.clip(slices / draws, np.finfo(float).tiny, None))
    return found
