"""Steps for other simulators, and their traces, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.traincast.command_line import run
from tests.traincast.test_examples import example

LAN = example("lan-ddp")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of traces of the smallest example, and a schedule beside it."""
    folder = tmp_path_factory.mktemp("exchange")
    outcome = run("simulate", LAN, "--chakra", folder / "traces", "--goal", folder / "step.goal")
    assert (outcome.code, outcome.err) == (0, "")
    return folder


def test_every_rank_has_its_trace_and_astra_sim_its_files(written: Path) -> None:
    names = {path.name for path in (written / "traces").iterdir()}
    ranks = {f"step.{rank}.et" for rank in range(4)}
    beside = {"comm_groups.json", "network.yml", "system.json", "remote_memory.json"}
    assert names == ranks | beside
    assert (written / "step.goal").read_text().startswith("num_ranks 4\n")


def test_a_replay_on_the_same_machine_takes_as_long_as_the_simulation(written: Path) -> None:
    record = run(
        "replay", written / "traces", "--profile", "lan-workstations", "--json", "-"
    ).record
    step = run("simulate", LAN, "--json", "-").record["step"]["step_time_s"]
    assert record["forecast_s"] == step
    assert record["step_time_s"] == pytest.approx(step, rel=1e-6)
    assert record["recorded_s"] == pytest.approx(step, rel=1e-6)


def test_a_replay_prints_what_ranks_do(written: Path) -> None:
    outcome = run("replay", written / "traces", "--profile", "dgx-h100")
    assert outcome.code == 0
    for part in ("4 ranks on dgx-h100", "all_reduce", "exposed communication"):
        assert part in outcome.out


def test_traces_that_are_there_are_not_overwritten(written: Path) -> None:
    outcome = run("simulate", LAN, "--chakra", written / "traces")
    assert (outcome.code, "nothing is overwritten" in outcome.err) == (2, True)


def test_more_ranks_than_the_limit_are_refused(tmp_path: Path) -> None:
    outcome = run("simulate", LAN, "--chakra", tmp_path / "x", "--ranks-limit", 2)
    assert (outcome.code, "--ranks-limit 4" in outcome.err) == (2, True)
    assert not (tmp_path / "x").exists()


def test_a_schedule_goes_to_standard_output() -> None:
    outcome = run("simulate", LAN, "--goal", "-")
    assert (outcome.code, outcome.out.splitlines()[0]) == (0, "num_ranks 4")


def test_two_outputs_cannot_share_standard_output() -> None:
    assert run("simulate", LAN, "--goal", "-", "--json", "-").code == 2


def test_a_folder_without_traces_is_refused(tmp_path: Path) -> None:
    outcome = run("replay", tmp_path, "--profile", "dgx-h100")
    assert (outcome.code, "no execution traces" in outcome.err) == (2, True)


def test_a_misspelt_precision_is_refused_with_what_was_meant(written: Path) -> None:
    outcome = run("replay", written / "traces", "--profile", "dgx-h100", "--precision", "bf61")
    assert (outcome.code, "'bf16'" in outcome.err) == (2, True)


@pytest.mark.parametrize("target", ["-", "step.goal"])
def test_traces_need_a_folder_of_their_own(tmp_path: Path, target: str) -> None:
    goal = tmp_path / "step.goal"
    chakra = target if target == "-" else tmp_path / target
    outcome = run("simulate", LAN, "--chakra", chakra, "--goal", goal)
    assert (outcome.code, outcome.err.startswith("--chakra: ")) == (2, True)
    assert not goal.exists()
