"""Compute times that scatter: their moments, and the largest of n against what theory says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from simulator.engine.jitter import Jitter, draw_jitter, factor_at, slow_one
from simulator.topology.network_file import JitterKind

DRAWS = 20_000
FOUR_SIGMA = 4 / math.sqrt(DRAWS)
"""Of a sample of a standard deviation of 1, how far its mean may lie off (one in 16,000 does)."""

JITTERS = [
    Jitter(kind=JitterKind.NORMAL, deviation=0.1),
    Jitter(kind=JitterKind.NORMAL, deviation=0.7),
    Jitter(kind=JitterKind.LOGNORMAL, deviation=0.5),
    Jitter(kind=JitterKind.GAMMA, deviation=0.3),
    Jitter(kind=JitterKind.GAMMA, deviation=1.0),
    Jitter(kind=JitterKind.SLOW_ONE, deviation=0.4, one_in=10.0),
]


def name(jitter: Jitter) -> str:
    return f"{jitter.kind} {jitter.deviation}"


def draws(
    jitter: Jitter, ranks: int, seed: int = 0
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    found = draw_jitter(jitter, (DRAWS,), ranks, np.random.default_rng(seed))
    return found.reshape(DRAWS)


@pytest.mark.parametrize("jitter", JITTERS, ids=name)
def test_factors_have_mean_1_and_the_deviation_asked_for(jitter: Jitter) -> None:
    """The integrals of all quantiles and of their squares, not a sample."""

    def moment(power: int) -> float:
        # In logarithms of the tail: quantiles of small tails run off to infinity.
        def weighted(x: float) -> float:
            tail = math.exp(-x)
            return float(factor_at(jitter, np.array([tail]))[0]) ** power * tail

        breaks = [math.log(jitter.one_in)]
        return float(quad(weighted, 0.0, 60.0, points=breaks, limit=200)[0])

    mean = moment(1)
    assert (mean, math.sqrt(moment(2) - mean**2)) == pytest.approx(
        (1.0, jitter.deviation), rel=1e-5
    )


@pytest.mark.parametrize("jitter", JITTERS, ids=name)
@pytest.mark.parametrize("ranks", [2, 16])
def test_one_draw_for_n_ranks_is_the_largest_of_n_draws(jitter: Jitter, ranks: int) -> None:
    generator = np.random.default_rng(1)
    brute = draw_jitter(jitter, (DRAWS, ranks), 1, generator).max(axis=1)
    drawn = draws(jitter, ranks)
    tolerance = math.sqrt(2) * FOUR_SIGMA * float(brute.std())
    assert float(drawn.mean()) == pytest.approx(float(brute.mean()), abs=tolerance)
    shares = [np.quantile(brute, q) for q in (0.1, 0.5, 0.9)]
    below = [[float((each <= x).mean()) for x in shares] for each in (drawn, brute)]
    assert below[0] == pytest.approx(below[1], abs=FOUR_SIGMA)


@pytest.mark.parametrize("ranks", [1, 8, 1000])
def test_the_slowest_of_n_exponential_times_takes_the_nth_harmonic_number(ranks: int) -> None:
    exponential = Jitter(kind=JitterKind.GAMMA, deviation=1.0)
    harmonic = sum(1 / k for k in range(1, ranks + 1))
    # The variance of the largest is at most pi^2 / 6.
    tolerance = FOUR_SIGMA * math.pi / math.sqrt(6)
    assert float(draws(exponential, ranks).mean()) == pytest.approx(harmonic, abs=tolerance)


def test_the_slowest_of_n_normal_times_grows_as_tabled() -> None:
    # Expected largest of 100 standard normal draws: 2.50759 (Tippett 1925).
    jitter = Jitter(kind=JitterKind.NORMAL, deviation=0.1)
    assert float(draws(jitter, 100).mean()) == pytest.approx(1.250759, abs=FOUR_SIGMA * 0.1)


def test_a_slow_one_in_ten_among_n_is_met_as_often_as_it_should() -> None:
    jitter = Jitter(kind=JitterKind.SLOW_ONE, deviation=0.4, one_in=10.0)
    usual, slow = slow_one(jitter)
    drawn = draws(jitter, 5)
    assert set(np.unique(drawn)) == {usual, slow}
    assert float((drawn == slow).mean()) == pytest.approx(1 - 0.9**5, abs=FOUR_SIGMA)


def test_a_slow_one_in_two_by_hand() -> None:
    # Half at 1 - 0.5, half at 1 + 0.5.
    jitter = Jitter(kind=JitterKind.SLOW_ONE, deviation=0.5, one_in=2.0)
    assert slow_one(jitter) == pytest.approx((0.5, 1.5))


def test_a_million_ranks_in_lockstep_are_drawn_exactly() -> None:
    exponential = Jitter(kind=JitterKind.GAMMA, deviation=1.0)
    drawn = draws(exponential, 10**6)
    # H_n = ln n + Euler's constant.
    expected = math.log(10**6) + float(np.euler_gamma)
    tolerance = FOUR_SIGMA * math.pi / math.sqrt(6)
    assert float(drawn.mean()) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("jitter", JITTERS, ids=name)
def test_no_factor_is_below_zero(jitter: Jitter) -> None:
    assert float(draws(jitter, 1).min()) >= 0.0


def test_a_seed_gives_the_same_factors_again() -> None:
    jitter = JITTERS[2]
    assert np.array_equal(draws(jitter, 4, seed=7), draws(jitter, 4, seed=7))
    assert not np.array_equal(draws(jitter, 4, seed=7), draws(jitter, 4, seed=8))
