"""`traincast calibrate fit` as a user meets it: the profile, tables, JSON, wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrate.points import MemoryBoundPoint
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import MemoryClass
from simulator.hardware.profile import load_profile
from tests.calibrate.fit_folders import measured, true_machine, write_folder
from tests.traincast.command_line import run


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    points = [
        MemoryBoundPoint(
            operator="layer_norm", memory_class=MemoryClass.NORM, dtype=Dtype.BF16, bytes=size
        )
        for size in (1e5, 1e6, 1e7, 1e8, 1e9)
    ]
    folder = tmp_path / "measured"
    folder.mkdir()
    return write_folder(folder, measured(points, true_machine()))


def test_the_profile_is_written_and_its_blocks_are_shown(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    outcome = run("calibrate", "fit", folder, "--out", out)
    assert outcome.code == 0, outcome.err
    assert "Fit of dgx-h100-calibrated, from dgx-h100" in outcome.out
    assert "memory_bound" in outcome.out
    assert load_profile(str(out)).name == "dgx-h100-calibrated"


def test_a_written_profile_plans_like_a_shipped_one(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    run("calibrate", "fit", folder, "--out", out)
    assert run("profiles", out).code == 0


def test_json_says_what_was_fitted(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    outcome = run("calibrate", "fit", folder, "--out", out, "--name", "mine", "--json", "-")
    record = json.loads(outcome.out)
    assert (record["profile"], record["base"], record["rejected"]) == ("mine", "dgx-h100", [])
    (block,) = record["blocks"]
    assert (block["name"], block["points"], block["fitted"]) == ("memory_bound", 5, True)
    assert block["left_out"]["median"] < 0.02 < block["left_out_base"]["median"]


def test_the_profile_can_go_to_standard_output(folder: Path) -> None:
    outcome = run("calibrate", "fit", folder, "--out", "-")
    assert outcome.out.startswith("# ")
    assert "[constants.memory_bound.efficiency]" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--base", "dgx-h1000"), "neither a shipped profile nor a .toml file"),
        (("--name", "Not A Name"), "--name"),
    ],
)
def test_wrong_input_ends_with_2_and_writes_nothing(
    folder: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    out = tmp_path / "mine.toml"
    outcome = run("calibrate", "fit", folder, "--out", out, *arguments)
    assert (outcome.code, out.exists()) == (2, False)
    assert message in outcome.err


def test_an_empty_folder_is_told_how_to_measure(tmp_path: Path) -> None:
    outcome = run("calibrate", "fit", tmp_path, "--out", tmp_path / "mine.toml")
    assert outcome.code == 2
    assert "traincast calibrate run" in outcome.err
