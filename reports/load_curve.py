"""The load of a link over time as few points: for JSON, where a step has thousands of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.results import LoadCurve

MOST = 100
"""Intervals of a curve in JSON."""


def load_record(load: LoadCurve) -> dict[str, Any]:
    """Return a curve of at most `MOST` intervals as plain values, and whether any were merged."""
    few = merged(load)
    return {
        "times_s": list(few.times),
        "rates_bytes_per_second": list(few.rates),
        "merged": few is not load,
    }


def merged(load: LoadCurve, most: int = MOST) -> LoadCurve:
    """Return a curve with at most `most` intervals, which carries the same bytes.

    Where it has more they give way to equal ones, each with the mean rate over it.

    >>> merged(LoadCurve(times=(0.0, 1.0, 2.0, 3.0, 4.0), rates=(8.0, 2.0, 4.0, 0.0)), 2)
    LoadCurve(times=(0.0, 2.0, 4.0), rates=(5.0, 2.0))
    """
    if len(load.rates) <= most:
        return load
    times = np.asarray(load.times)
    carried = np.concatenate([[0.0], np.cumsum(np.diff(times) * load.rates)])
    edges = np.linspace(times[0], times[-1], most + 1)
    rates = np.diff(np.interp(edges, times, carried)) / np.diff(edges)
    return LoadCurve(times=tuple(edges.tolist()), rates=tuple(rates.tolist()))
