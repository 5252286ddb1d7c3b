"""Failure rates: what was counted, what it says of another cluster, and where files are wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from planner.goodput.rates import (
    FailureKind,
    Per,
    Recovery,
    ReliabilityFile,
    drawn_hazard,
    expected_hazard,
    load_rates,
    rate_names,
    things,
)
from planner.goodput.replicate import draw_worlds
from simulator.errors import InputError
from simulator.files import parse_record
from simulator.hardware.profile import Source
from simulator.units import SECONDS_PER_DAY
from tests.planner.scenarios import machine

RECOVERY = Recovery(detection=1.0, restart=2.0, repair=3.0, checkpoint_overhead=0.0)


def counted(*kinds: tuple[Per, int, float, bool]) -> ReliabilityFile:
    """Return a file of kinds: per what, events, exposure in days, whether a node is lost."""
    source = {"what": "all", "reference": "made up", "read_on": "2000-01-01"}
    return ReliabilityFile(
        name="made-up",
        title="made up",
        kind=tuple(
            FailureKind(name=str(n), per=per, events=events, exposure_days=days, loses_node=loses)
            for n, (per, events, days, loses) in enumerate(kinds)
        ),
        recovery=RECOVERY,
        source=(parse_record(Source, source, "source"),),
    )


def test_rates_scale_with_what_there_is_of_each_thing() -> None:
    # 4 nodes of 8: 32 x 1/100 a day of accelerators and 4 x 2/100 of nodes: 0.4 a day.
    file = counted((Per.ACCELERATOR, 1, 100.0, True), (Per.NODE, 2, 100.0, False))
    hazard = expected_hazard(file, machine(), 4)
    assert (hazard.mtbf, hazard.loses_node) == pytest.approx((SECONDS_PER_DAY / 0.4, 0.8))


def test_a_leaf_switch_serves_whole_groups_of_nodes() -> None:
    assert [things(Per.LEAF, machine(), nodes) for nodes in (16, 17)] == [1, 2]


@pytest.mark.parametrize("name", rate_names())
def test_shipped_rates_load_and_say_where_each_number_is_from(name: str) -> None:
    file = load_rates(name)
    said = " ".join(source.what for source in file.source)
    missing = [key for key in Recovery.model_fields if f"recovery.{key}" not in said]
    assert (file.name, missing, "kind" in said) == (name, [], True)


def test_the_published_interruptions_of_llama_3_are_419_in_54_days() -> None:
    """The Llama 3 Herd of Models, table 5: 16,384 accelerators in 2,048 nodes of 8."""
    hazard = expected_hazard(load_rates("llama3-405b"), machine(), 2048)
    assert 54 * SECONDS_PER_DAY * hazard.per_second == pytest.approx(419)


@pytest.mark.parametrize(("name", "daily"), [("meta-rsc-1", 6.50), ("meta-rsc-2", 2.34)])
def test_rates_of_research_clusters_are_those_a_thousand_node_days(name: str, daily: float) -> None:
    hazard = expected_hazard(load_rates(name), machine(), 1000)
    assert hazard.per_second * SECONDS_PER_DAY == pytest.approx(daily, rel=1e-3)


def test_few_failures_leave_a_wide_rate() -> None:
    """The gamma posterior of n events has a relative deviation of 1 / sqrt(n + 1/2)."""
    rng, profile = np.random.default_rng(0), machine()

    def deviation(events: int) -> float:
        file = counted((Per.NODE, events, 1000.0, True))
        rates = [drawn_hazard(file, profile, 1, rng).per_second for _ in range(4000)]
        return float(np.std(rates) / np.mean(rates))

    assert [deviation(4), deviation(148)] == pytest.approx([4.5**-0.5, 148.5**-0.5], rel=0.06)


def test_each_cluster_gives_its_rates_to_as_many_runs() -> None:
    files = [counted((Per.NODE, 10**8, 1e8, True)), counted((Per.NODE, 10**8, 1e9, True))]
    worlds = draw_worlds(files, machine(), 1, 0.2, seed=0, runs=50)
    drawn = [round(world.hazard.per_second * SECONDS_PER_DAY, 2) for world in worlds]
    assert [Counter(drawn[:10]), Counter(drawn)] == [{1.0: 5, 0.1: 5}, {1.0: 25, 0.1: 25}]


@pytest.mark.parametrize("seed", range(3))
def test_few_runs_have_the_quantiles_of_the_step(seed: int) -> None:
    """10 %, 50 % and 90 % of the paces are the interval's ends and middle, whatever the seed."""
    worlds = draw_worlds((), machine(), 1, 0.2, seed=seed, runs=200)
    found = np.quantile([world.pace for world in worlds], (0.1, 0.5, 0.9))
    assert found == pytest.approx((1 / 1.2, 1.0, 1.2), rel=0.005)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"run\.failures\.rates\.1: .*\n.*'meta-rsc-1'"):
        load_rates("meta-rsc1", where="run.toml", number=1)


def test_a_wrong_file_is_told_with_all_its_errors(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('name = "own"\ntitle = ""\n[[kind]]\nname = "x"\nper = "rack"\nevents = -1\n')
    with pytest.raises(InputError) as error:
        load_rates(str(path))
    assert {problem.key for problem in error.value.problems} >= {
        "kind.0.per",
        "kind.0.events",
        "kind.0.exposure_days",
        "recovery",
    }
