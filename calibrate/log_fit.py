"""Least squares on logarithms: the one fit of positive constants to measured times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]

SOFT = 0.05
"""Log error at which the loss turns from square to linear: 5 %, about the scatter of repeats."""
_STEP = 1e-3
"""Relative step of the derivatives: wide enough to see through rounding up to whole waves."""
_MOST_STEPS = 200
"""Steps after which a search ends in any case; they take 20 to 60."""
_NORMAL = 1.4826
"""Standard deviation over the median absolute error of a normal distribution."""
_HELD_OUT = 5
"""One point in five is left out of a fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeConstant:
    """A constant to fit: where it is believed to lie, and the bounds it must keep."""

    prior: float
    low: float
    high: float
    spread: float = 1.0
    """Standard deviation of log(value / prior)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Fitted values, and how well the points settle them."""

    values: dict[str, float]
    uncertainty: dict[str, float]
    """Standard deviation of the log of each value; at most the spread of its prior."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """|predicted / measured - 1| on points that a fit did not see."""

    errors: Array

    @property
    def median(self) -> float:
        """Median error."""
        return float(np.median(self.errors))

    @property
    def p90(self) -> float:
        """90th percentile."""
        return float(np.quantile(self.errors, 0.9))

    def where(self, chosen: NDArray[np.bool_]) -> Held:
        """Return the errors of the chosen points."""
        return Held(errors=self.errors[chosen])


def held_out(count: int, *, seed: int = 0) -> tuple[Indices, Indices]:
    """Return the indices of the points to fit, in random order, and of the fifth left out."""
    order = np.random.default_rng(seed).permutation(count)
    return order[count // _HELD_OUT :], np.sort(order[: count // _HELD_OUT])


def fit_constants(
    free: Mapping[str, FreeConstant],
    log_errors: Callable[[dict[str, float]], Array],
) -> dict[str, float]:
    """Return the values of the free constants that make `log_errors` small (see `find`)."""
    return find(free, log_errors).values


def find(
    free: Mapping[str, FreeConstant],
    log_errors: Callable[[dict[str, float]], Array],
    weights: Array | float = 1.0,
) -> Found:
    """Return the values of the free constants that make `log_errors` small.

    Minimises the soft-L1 loss of the errors, each times its weight, and, for each constant, of
    SOFT log(value / prior) / spread: one measured point's worth of belief.
    """
    names = list(free)
    prior = np.log([constant.prior for constant in free.values()])
    low = np.log([constant.low for constant in free.values()]) - prior
    high = np.log([constant.high for constant in free.values()]) - prior
    spread = np.array([constant.spread for constant in free.values()])

    def residuals(point: Array) -> Array:
        away = point - 1
        values = dict(zip(names, np.exp(prior + away).tolist(), strict=True))
        return np.concatenate([weights * log_errors(values), SOFT * away / spread])

    # The search is over 1 + log(value / prior): its steps are relative, so it must not start at 0.
    start = np.clip(1.0, 1 + low + _STEP, 1 + high - _STEP)
    found = least_squares(
        residuals,
        start,
        bounds=(1 + low, 1 + high),
        loss="soft_l1",
        f_scale=SOFT,
        diff_step=[_STEP],
        max_nfev=_MOST_STEPS,
    )
    values = np.exp(prior + found.x - 1).tolist()
    deviation = _deviations(np.asarray(found.jac), found.fun, weights)
    deviation = np.minimum(deviation, spread).tolist()
    return Found(
        values=dict(zip(names, values, strict=True)),
        uncertainty=dict(zip(names, deviation, strict=True)),
    )


def loss_weights(log_errors: Array) -> Array:
    """Return the weight that the soft loss gives to each point: 1 for one that agrees.

    >>> loss_weights(np.array([0.0, SOFT])).round(2).tolist()
    [1.0, 0.71]
    """
    weights: Array = 1 / np.sqrt(1 + (log_errors / SOFT) ** 2)
    return weights


def _deviations(jacobian: Array, residuals: Array, weights: Array | float) -> Array:
    """Return the standard deviations of the logs of the constants at the optimum.

    With H = J'J: H^-1 (D' W^2 D s^2 + SOFT^2 P'P) H^-1, where D are the rows of the points, which
    scatter by s times their weight, and P those of the priors, whose residuals are scaled to SOFT.
    The p constants that points settle, tr(H^-1 D'D), fit themselves to n points, which then scatter
    less about them: s^2 is larger by n / (n - p), at most n.
    """
    count = jacobian.shape[1]
    data, priors = jacobian[:-count], jacobian[-count:]
    errors = np.abs(residuals[:-count] / weights)
    inverse = np.linalg.pinv(jacobian.T @ jacobian)
    settled = float(np.trace(inverse @ data.T @ data))
    scatter = _NORMAL * float(np.median(errors)) if errors.size else 0.0
    variance = scatter**2 * errors.size / max(errors.size - settled, 1.0)
    heavy = (weights * data.T).T
    middle = variance * heavy.T @ heavy + SOFT**2 * priors.T @ priors
    deviations: Array = np.sqrt(np.clip(np.diag(inverse @ middle @ inverse), 0.0, None))
    return deviations
