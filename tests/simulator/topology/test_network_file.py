"""What a scenario may say of its network: values that no step could be played with are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator.engine.jitter import Jitter, draw_jitter
from simulator.errors import InputError
from simulator.files import parse_record
from simulator.topology.fabrics.tier_file import TierFile
from simulator.topology.network_file import BackgroundTraffic, JitterFile

PAIR = {"source": [0], "target": [8], "bandwidth": "50 GB/s", "duty": 0.5}


def refusal(record: type[BackgroundTraffic | JitterFile | TierFile], table: dict[str, Any]) -> str:
    with pytest.raises(InputError) as error:
        parse_record(record, table, "scenario.toml")
    return str(error.value)


def test_bursts_too_short_to_play_are_refused_with_the_mean_that_they_come_to() -> None:
    text = refusal(BackgroundTraffic, PAIR | {"period": "1 ns"})
    assert "at least 100 us" in text
    assert 'bandwidth = "25 GB/s"' in text


@pytest.mark.parametrize("period", ["0 s", "1e-300 s"])
def test_no_period_is_so_short_that_a_step_never_ends(period: str) -> None:
    assert "at least 100 us" in refusal(BackgroundTraffic, PAIR | {"period": period})


def test_the_shortest_period_that_is_played_is_read() -> None:
    read = parse_record(BackgroundTraffic, PAIR | {"period": "100 us"}, "")
    assert read.period == pytest.approx(1e-4)


def test_traffic_from_an_accelerator_to_itself_is_refused() -> None:
    pairs = {"source": [0, 3], "target": [8, 3], "bandwidth": "1 GB/s"}
    assert "accelerator 3 is at the same place" in refusal(BackgroundTraffic, pairs)


@pytest.mark.parametrize("deviation", [1e-300, 1e-160, 9e-7])
def test_a_scatter_that_vanishes_among_roundings_is_refused(deviation: float) -> None:
    assert "deviation" in refusal(JitterFile, {"deviation": deviation})


def test_a_normal_scatter_without_quantiles_is_refused_with_another_distribution() -> None:
    text = refusal(JitterFile, {"distribution": "normal", "deviation": 0.9999})
    assert "at most 0.999" in text
    assert "gamma" in text


@pytest.mark.parametrize("deviation", [1e-6, 0.999])
@pytest.mark.parametrize("distribution", ["normal", "lognormal", "gamma", "slow-one"])
def test_every_scatter_that_is_read_can_be_drawn(distribution: str, deviation: float) -> None:
    file = parse_record(JitterFile, {"distribution": distribution, "deviation": deviation}, "")
    jitter = Jitter(kind=file.distribution, deviation=file.deviation, one_in=file.one_in)
    drawn = draw_jitter(jitter, (2000,), 1, np.random.default_rng(0))
    # Six standard errors of the mean of 2,000 independent draws.
    assert drawn.mean() == pytest.approx(1.0, abs=6 * deviation / np.sqrt(2000))
    assert drawn.min() >= 0


@pytest.mark.parametrize("ratio", [1e-300, 9e-4])
def test_more_uplinks_than_any_switch_has_are_refused_before_they_are_tried(ratio: float) -> None:
    assert "0.001" in refusal(TierFile, {"joins": 32, "oversubscription": ratio})
