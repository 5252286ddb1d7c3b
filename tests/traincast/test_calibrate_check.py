"""`traincast calibrate check` as a user meets it: exit codes, JSON, wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrate.predict import predict
from calibrate.records import Record
from simulator.hardware.profile import load_profile
from tests.calibrate.measured import all_reduce, gemm, record, rejected, step, write_folder
from tests.traincast.command_line import run
from traincast.docs.calibration_files import CHECK, FAMILY, POINT

H100 = load_profile("dgx-h100")


def measured_as_forecast(factor: float = 1.0) -> Record:
    return record(gemm(), predict(record(gemm()), H100).seconds * factor)


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """A point that is forecast 20 % too slow, one exactly, and one that was rejected."""
    exact = predict(record(all_reduce(2**26)), H100).seconds
    return write_folder(
        tmp_path / "measured",
        measured_as_forecast(1 / 1.2),
        record(all_reduce(2**26), exact),
        rejected(all_reduce(8), "faster than light"),
    )


def check(folder: Path, *arguments: str, profile: str = "dgx-h100") -> tuple[int, str, str]:
    outcome = run("calibrate", "check", folder, "--profile", profile, *arguments)
    return outcome.code, outcome.out, outcome.err


def test_a_check_without_limits_passes(folder: Path) -> None:
    code, out, err = check(folder)
    assert (code, err) == (0, "")
    assert "faster than light" in out


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (["--median", "11%"], 0),
        (["--median", "9 %"], 1),
        (["--worst", "20.1%"], 0),
        (["--worst", "19%"], 1),
        (["--worst", "1%", "--only", "collective"], 0),
    ],
)
def test_limits_decide_the_exit_code(folder: Path, limits: list[str], code: int) -> None:
    assert check(folder, *limits)[0] == code


def test_a_broken_limit_is_told_with_its_numbers(folder: Path) -> None:
    err = check(folder, "--worst", "19%")[2]
    assert ("worst error 20.0%" in err, "limit of 19%" in err) == (True, True)


@pytest.mark.parametrize("text", ["4", "0.04", "four%", "-1%", "1..2%", ""])
def test_a_limit_without_its_sign_is_wrong_usage(folder: Path, text: str) -> None:
    code, _, err = check(folder, "--median", text)
    assert (code, "must be a percentage" in err) == (2, True)


def test_an_unknown_kind_is_wrong_usage(folder: Path) -> None:
    code, _, err = check(folder, "--only", "gem")
    assert (code, "did you mean 'gemm'?" in err) == (2, True)


@pytest.mark.parametrize("missing", ["no-such-folder", ""])
def test_a_folder_without_measurements_is_wrong_input(tmp_path: Path, missing: str) -> None:
    assert check(tmp_path / missing)[0] == 2


def test_limits_are_not_kept_by_rejected_points_alone(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", rejected(gemm(), "impossible"))
    assert check(folder)[0] == 0
    assert check(folder, "--median", "50%")[0] == 1


def test_a_header_alone_is_nothing_to_compare(tmp_path: Path) -> None:
    code, out, _ = check(write_folder(tmp_path / "m"))
    assert (code, "No measured point could be compared" in out) == (0, True)


def test_json_says_what_the_reference_page_says(folder: Path) -> None:
    code, out, _ = check(folder, "--json", "-")
    table = json.loads(out)
    assert code == 0
    assert (set(table), set(table["total"])) == (set(CHECK), set(FAMILY))
    assert {key for point in table["points"] for key in point} == set(POINT)


def test_json_is_written_where_a_limit_breaks(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "check.json"
    assert check(folder, "--worst", "1%", "--json", str(target))[0] == 1
    assert len(json.loads(target.read_text())["broken_limits"]) == 1


def test_a_step_with_an_unknown_stack_is_listed(tmp_path: Path) -> None:
    point = step()
    unknown = point.model_copy(update={"job": point.job.model_copy(update={"stack": "mine"})})
    code, out, _ = check(write_folder(tmp_path / "m", record(unknown)))
    assert (code, "neither a shipped stack" in out) == (0, True)


def test_a_folder_that_is_not_there_is_told_with_what_makes_it(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    code, _, err = check(missing)
    assert (code, f"traincast calibrate run --out {missing}" in err) == (2, True)
