"""Combinations become scenarios; what is wrong in any of them is known before the first runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from planner.sweep.cases import cases_of, scenario_cases
from planner.sweep.sweep_file import Method
from simulator.errors import InputError
from simulator.units import GB
from tests.planner.sweep.sweeps import EXAMPLES, SMALL, batches, sweep

PIPELINE = EXAMPLES / "llama3-8b-csv-schedule.toml"


def test_keys_that_the_scenario_leaves_out_can_be_set() -> None:
    first, second = cases_of(sweep({"search.tp": [[1, 2], [4]]}))
    assert (first.scenario.file.search.tp, second.scenario.file.search.tp) == ((1, 2), (4,))


def test_dp_still_fills_the_cluster() -> None:
    (case,) = cases_of(sweep({"cluster.nodes": [4]}))
    layout = case.scenario.file.layout
    assert layout is not None
    assert "dp" not in layout.model_fields_set


def test_keys_of_the_machine_change_it_by_value_or_by_factor() -> None:
    found = cases_of(sweep({"node.nic.bandwidth": ["100 Gbps", "x2"]}))
    nics = [case.scenario.profile.node.nic for case in found]
    assert [nic.bandwidth / GB for nic in nics if nic] == [12.5, 100.0]


def test_every_wrong_value_is_told_once_with_its_combinations() -> None:
    over = {"cluster.nodes": [1, 0], "job.global_batch_size": [128, -1], "job.sequence": [1]}
    with pytest.raises(InputError) as caught:
        cases_of(sweep(over))
    found = {(p.where, p.key): p.rule for p in caught.value.problems}
    assert found == {
        ("sweep.toml", "job.sequence"): "unknown key (in all 4 combinations: cluster.nodes 1, "
        "job.global_batch_size 128, job.sequence 1; cluster.nodes 1, job.global_batch_size -1, "
        "job.sequence 1, ...)",
        ("sweep.toml", "job.global_batch_size"): "input should be greater than or equal to 1 "
        "(in 2 of 4 combinations: cluster.nodes 1, job.global_batch_size -1, job.sequence 1; "
        "cluster.nodes 0, job.global_batch_size -1, job.sequence 1)",
        ("sweep.toml", "cluster.nodes"): "input should be greater than or equal to 1 (in 2 of 4 "
        "combinations: cluster.nodes 0, job.global_batch_size 128, job.sequence 1; "
        "cluster.nodes 0, job.global_batch_size -1, job.sequence 1)",
    }


def test_a_misspelt_machine_key_is_told_with_the_right_one() -> None:
    with pytest.raises(InputError, match="did you mean 'bandwidth'"):
        cases_of(sweep({"node.nic.bandwith": ["x2"]}))


def test_a_value_inside_something_that_is_no_table_is_refused() -> None:
    with pytest.raises(InputError, match=r"cluster\.nodes is no table"):
        cases_of(sweep({"cluster.nodes.many": [1]}))


def test_a_layout_is_needed_where_it_is_to_be_simulated(tmp_path: Path) -> None:
    text = SMALL.read_text()
    path = tmp_path / "plain.toml"
    path.write_text(text[: text.index("[layout]")])
    with pytest.raises(InputError, match="has nothing to simulate"):
        scenario_cases((str(path),), Method.SIMULATE)


def test_a_machine_that_lacks_a_precision_is_no_error_of_the_sweep() -> None:
    assert len(cases_of(sweep({"job.precision": ["bf16", "fp4"]}))) == 2


def test_the_digest_is_of_what_a_forecast_depends_on(tmp_path: Path) -> None:
    (case,) = batches([256])
    (other,) = batches([512])
    renamed = tmp_path / "elsewhere.toml"
    renamed.write_text(SMALL.read_text().replace("Llama 3.1 8B", "The same"))
    (same,) = cases_of(sweep({"job.global_batch_size": [256]}, scenario=renamed))
    (machine,) = cases_of(
        sweep({"job.global_batch_size": [256], "accelerator.memory_bandwidth": ["x1.5"]})
    )
    assert same.key == case.key
    assert len({case.key, other.key, machine.key}) == 3


def test_the_digest_is_of_files_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "schedules").mkdir()
    path = Path(shutil.copy(PIPELINE, tmp_path))
    schedule = tmp_path / "schedules" / "llama3-8b-pp4.csv"
    schedule.write_bytes((EXAMPLES / "schedules" / schedule.name).read_bytes())

    def key(where: Path) -> str:
        return scenario_cases((str(where),), Method.ESTIMATE)[0].key

    assert key(path) == key(PIPELINE)
    schedule.write_text(schedule.read_text() + "\n")
    assert key(path) != key(PIPELINE)
