"""Constants of made-up machines come back as near as the fit says that they do."""

from __future__ import annotations

import numpy as np
import pytest

from calibrate.log_fit import FreeConstant, find

TRIALS = 60
SPREAD = 0.3
"""By which the machines differ from what the base believes."""
BELIEVED = {"start": 5e-6, "hop": 1e-6, "rate": 1e11}


def seconds(values: dict[str, float], hops: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    found: np.ndarray = values["start"] + hops * values["hop"] + sizes / values["rate"]
    return found


def off(count: int, noise: float, heavy: float) -> np.ndarray:
    """Return log(found / true) over the stated uncertainty, a row a machine.

    `heavy` weighs the larger half of the points.
    """
    random = np.random.default_rng(3)
    free = {
        name: FreeConstant(prior=value, low=value / 1e3, high=value * 1e3, spread=SPREAD)
        for name, value in BELIEVED.items()
    }
    rows = []
    for _ in range(TRIALS):
        true = {n: v * np.exp(SPREAD * random.standard_normal()) for n, v in BELIEVED.items()}
        hops, sizes = random.integers(1, 9, count), np.geomspace(1e3, 1e9, count)
        times = seconds(true, hops, sizes) * np.exp(noise * random.standard_normal(count))
        weights = np.where(np.arange(count) < count / 2, 1.0, heavy)
        found = find(
            free,
            lambda v, h=hops, s=sizes, t=times: np.log(seconds(v, h, s) / t),  # type: ignore[misc]
            weights,
        )
        rows.append([np.log(found.values[n] / true[n]) / found.uncertainty[n] for n in free])
    return np.array(rows)


@pytest.mark.parametrize(
    ("count", "noise", "heavy"),
    [(4, 0.05, 1.0), (6, 0.05, 1.0), (30, 0.02, 1.0), (30, 0.02, 3.0), (30, 0.15, 1.0)],
)
def test_constants_come_back_within_their_uncertainty(
    count: int, noise: float, heavy: float
) -> None:
    away = off(count, noise, heavy)
    # 1 for an exact statement; few points and a prior make it rough.
    assert np.sqrt((away**2).mean(axis=0)).max() < 1.4
    assert (abs(away) < 2).mean() > 0.9
