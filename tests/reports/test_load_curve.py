"""Curves of few points carry what the whole ones do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.load_curve import MOST, load_record, merged
from simulator.results import LoadCurve

LENGTHS = st.lists(st.floats(min_value=1e-6, max_value=10), min_size=1, max_size=40)


def carried(load: LoadCurve) -> float:
    """Return the bytes under a curve."""
    return float(np.dot(np.diff(load.times), load.rates))


def test_intervals_give_way_to_equal_ones_with_their_mean_rates() -> None:
    load = LoadCurve(times=(1.0, 2.0, 5.0, 7.0), rates=(6.0, 0.0, 9.0))
    assert merged(load, 2) == LoadCurve(times=(1.0, 4.0, 7.0), rates=(2.0, 6.0))


@given(LENGTHS, st.integers(1, 12))
def test_merging_keeps_the_bytes_the_ends_and_the_number(lengths: list[float], most: int) -> None:
    times = np.concatenate([[0.0], np.cumsum(lengths)])
    rates = [float(number * 7 % 11) for number in range(len(lengths))]
    load = LoadCurve(times=tuple(times.tolist()), rates=tuple(rates))
    few = merged(load, most)
    assert carried(few) == pytest.approx(carried(load), rel=1e-9, abs=1e-12)
    assert len(few.rates) == min(most, len(rates))
    assert [few.times[0], few.times[-1]] == pytest.approx([load.times[0], load.times[-1]])


def test_a_short_curve_is_written_as_it_is_and_a_long_one_says_that_it_is_not() -> None:
    short = LoadCurve(times=(0.0, 1.0, 3.0), rates=(4.0, 5.0))
    long = LoadCurve(times=tuple(map(float, range(MOST + 2))), rates=(1.0,) * (MOST + 1))
    record = load_record(long)
    assert load_record(short) == {
        "times_s": [0.0, 1.0, 3.0],
        "rates_bytes_per_second": [4.0, 5.0],
        "merged": False,
    }
    assert (len(record["rates_bytes_per_second"]), record["merged"]) == (MOST, True)
