"""Compute times that scatter: a distribution of mean 1, and the slowest of ranks in lockstep.

Ranks that run in lockstep go at the pace of the slowest, so that what counts of n of them is the
largest of n draws. Its distribution function is F^n; where U is uniform, F^-1(U^(1/n)) has it, and
one draw stands for n exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from simulator.topology.graph import FloatArray
from simulator.topology.network_file import JitterKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Jitter:
    """Factors of compute times, of mean 1."""

    kind: JitterKind
    deviation: float
    """Relative standard deviation, above 0. Of positive normal times it is below 1, of a slow one
    in N below sqrt(N - 1): no such distribution has more."""
    one_in: float = 2.0
    """N of a slow one in N, above 1."""

    @property
    def limit(self) -> float:
        """What the deviation must be below."""
        match self.kind:
            case JitterKind.NORMAL:
                return 1.0
            case JitterKind.SLOW_ONE:
                return math.sqrt(self.one_in - 1)
            case JitterKind.LOGNORMAL | JitterKind.GAMMA:
                return math.inf
            case _:
                assert_never(self.kind)


def draw_jitter(
    jitter: Jitter, shape: tuple[int, ...], ranks: int, generator: np.random.Generator
) -> FloatArray:
    """Return an array of factors, each the largest of `ranks` independent ones.

    The tail 1 - U^(1/n) is drawn in place of U^(1/n), which is too close to 1 for large n:
    -log U is exponential.
    """
    assert 0 < jitter.deviation < jitter.limit, jitter
    exponent = generator.standard_exponential(shape) / ranks
    return factor_at(jitter, -np.expm1(-exponent))


def factor_at(jitter: Jitter, tail: FloatArray) -> FloatArray:
    """Return the factor that is exceeded with probability `tail`, 0 < tail <= 1."""
    from scipy.special import gammainccinv, ndtri

    match jitter.kind:
        case JitterKind.NORMAL:
            return _positive_normal(jitter.deviation, tail)
        case JitterKind.LOGNORMAL:
            # Of mean exp(mu + s^2 / 2) = 1 and relative variance exp(s^2) - 1.
            variance = math.log1p(jitter.deviation**2)
            standard = np.asarray(ndtri(tail), dtype=np.float64)
            return np.exp(-variance / 2 - math.sqrt(variance) * standard)
        case JitterKind.GAMMA:
            # Of mean k theta = 1 and variance k theta^2.
            scale = jitter.deviation**2
            return np.asarray(scale * gammainccinv(1 / scale, tail), dtype=np.float64)
        case JitterKind.SLOW_ONE:
            usual, slow = slow_one(jitter)
            return np.where(tail < 1 / jitter.one_in, slow, usual)
        case _:
            assert_never(jitter.kind)


def slow_one(jitter: Jitter) -> tuple[float, float]:
    """Return the factors of usual and of slow kernels.

    With p = 1/N and a slow one longer by d the mean is 1 + p d and the deviation d sqrt(p (1 - p));
    both are divided by the mean.
    """
    p = 1 / jitter.one_in
    longer = jitter.deviation / (math.sqrt(p * (1 - p)) - p * jitter.deviation)
    return 1 / (1 + p * longer), (1 + longer) / (1 + p * longer)


def _positive_normal(deviation: float, tail: FloatArray) -> FloatArray:
    """Return quantiles of a normal distribution cut off at 0, of mean 1.

    In units of its scale it is cut at a, where the hazard is h = phi(a) / Q(a): the mean is h - a
    and the variance 1 + a h - h^2 (Johnson, Kotz and Balakrishnan, Continuous Univariate
    Distributions 1, section 13.10.1).
    """
    from scipy.optimize import brentq
    from scipy.special import log_ndtr, ndtri

    low = -1 / deviation - 1  # where nothing is cut off the deviation is -1 / a
    high = low + 1
    while _relative_deviation(high) < deviation:
        high += 1
    cut = float(brentq(lambda a: _relative_deviation(a) - deviation, low, high))
    standard = -np.asarray(ndtri(tail * math.exp(log_ndtr(-cut))), dtype=np.float64)
    return (standard - cut) / (_hazard(cut) - cut)


def _relative_deviation(cut: float) -> float:
    hazard = _hazard(cut)
    return math.sqrt(1 + cut * hazard - hazard**2) / (hazard - cut)


def _hazard(cut: float) -> float:
    from scipy.special import log_ndtr

    density = math.exp(-(cut**2) / 2 - float(log_ndtr(-cut)))
    return density / math.sqrt(2 * math.pi)
