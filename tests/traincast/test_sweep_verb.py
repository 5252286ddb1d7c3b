"""`traincast sweep` and `traincast compare`, from files to files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

import traincast
from planner.sweep.cases import cases_of
from planner.sweep.sweep_file import load_sweep
from tests.traincast.command_line import run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = EXAMPLES / "llama3.1-8b-dgx-h100.toml"
SWEEPS = sorted((EXAMPLES / "sweeps").glob("*.toml"))


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.toml"
    path.write_text(
        f'[sweep]\nscenario = "{SMALL}"\nwhat = "estimate"\n'
        '[sweep.over]\n"cluster.nodes" = [1, 2]\n"job.precision" = ["bf16", "fp4"]\n'
    )
    return path


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_every_example_is_sound_and_listed(path: Path) -> None:
    assert len(cases_of(load_sweep(path))) > 1
    assert f"sweeps/{path.name}" in (EXAMPLES.parent / "docs" / "examples.md").read_text()


def test_a_sweep_writes_the_same_rows_in_every_form(file: Path, tmp_path: Path) -> None:
    csv, parquet, figure = (tmp_path / f"rows.{end}" for end in ("csv", "parquet", "svg"))
    kept = tmp_path / "kept"
    outcome = run("sweep", file, "--json", "-", "--csv", csv, "--figure", figure, "--out", kept)
    record = outcome.record
    assert (outcome.code, outcome.err) == (0, "")
    assert [row["outcome"] for row in record["rows"]] == ["ok", "refused"] * 2
    again = run("sweep", file, "--json", "-", "--parquet", parquet, "--out", kept)
    assert again.record == {**record, "kept": 4}
    written, read = pd.read_parquet(parquet), pd.read_csv(csv)
    assert list(written.columns) == list(read.columns)
    assert list(written["cluster.nodes"]) == [1, 1, 2, 2]
    assert written["step_time_s"].tolist() == pytest.approx(
        [row["step_time_s"] or float("nan") for row in record["rows"]], nan_ok=True
    )
    assert figure.read_bytes().startswith(b"<svg")


def test_all_that_is_wrong_is_said_before_anything_runs(file: Path, tmp_path: Path) -> None:
    file.write_text(file.read_text().replace("[1, 2]", "[0, 2]").replace("fp4", "fp5"))
    outcome = run("sweep", file, "--out", tmp_path / "kept")
    assert (outcome.code, outcome.out) == (2, "")
    assert "cluster.nodes: input should be greater than or equal to 1" in outcome.err
    assert "in 2 of 4 combinations: cluster.nodes 0, job.precision fp5" in outcome.err
    assert not (tmp_path / "kept").exists()


def test_a_sweep_of_which_nothing_can_run_fails(file: Path) -> None:
    file.write_text(file.read_text().replace('"bf16", ', ""))
    outcome = run("sweep", file)
    assert outcome.code == 1
    assert "#1, #2: " in outcome.out
    assert "none of the 2 combinations can run" in outcome.err


def test_a_missing_package_is_named_with_what_installs_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    outcome = run("sweep", file, "--scheduler", "tcp://127.0.0.1:1")
    assert outcome.code == 2
    assert "needs Dask" in outcome.err
    assert "pip install 'traincast[sweep]'" in outcome.err


def test_scenarios_are_compared_by_their_layouts(tmp_path: Path) -> None:
    other = tmp_path / "two-nodes.toml"
    other.write_text(SMALL.read_text().replace("nodes = 1", "nodes = 2"))
    outcome = run("compare", SMALL, other, "--layout", "--json", "-")
    first, second = outcome.record["scenarios"]
    ratio = second["against_first"]["step_time_s"]["ratio"]
    assert outcome.code == 0
    assert outcome.record["changed"] == [{"key": "cluster.nodes", "values": [1, 2]}]
    assert ratio == second["step_time_s"] / first["step_time_s"]
    assert first["against_first"]["step_time_s"] == {"difference": 0.0, "ratio": 1.0}


def test_one_scenario_is_no_comparison() -> None:
    outcome = run("compare", SMALL)
    assert (outcome.code, "two scenarios or more" in outcome.err) == (2, True)


def test_frames_have_a_row_each() -> None:
    frame = traincast.compare(
        EXAMPLES / "lan-ddp.toml", EXAMPLES / "lan-powersgd.toml", layout=True
    )
    assert frame["step_time_s_ratio"][0] == 1.0
    assert frame["step_time_s_ratio"][1] == frame["step_time_s"][1] / frame["step_time_s"][0]
    swept = traincast.sweep(SMALL, over={"search.tp": [[1], [2]]}, what="estimate")
    assert json.loads(swept.to_json(orient="records"))[1]["search.tp"] == [2]
