"""Draws that are spread evenly."""

from __future__ import annotations

import numpy as np

from planner.hypercube import hypercube


def test_a_hypercube_has_one_draw_in_each_slice() -> None:
    found = hypercube(np.random.default_rng(0), 4, 3)
    quartiles = np.searchsorted([-0.6745, 0.0, 0.6745], np.sort(found, axis=0))
    assert quartiles.tolist() == [[0] * 3, [1] * 3, [2] * 3, [3] * 3]
