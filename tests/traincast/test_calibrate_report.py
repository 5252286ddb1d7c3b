"""`traincast calibrate report` as a user meets it: pages, a terminal, odd folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate.predict import predict
from calibrate.records import Record
from simulator.hardware.profile import load_profile
from tests.calibrate.measured import all_reduce, copy, gemm, record, rejected, write_folder
from tests.traincast.command_line import run

H100 = load_profile("dgx-h100")


def measured() -> list[Record]:
    """Round shapes, all 10 % slower than the shipped profile says."""
    points = [gemm(2**i, 4096, 4096) for i in range(8, 14)]
    points += [gemm(2**i, 1024, 8192) for i in range(8, 14)]
    others = [all_reduce(2**i) for i in range(16, 29, 3)], [copy(2**i) for i in range(22, 30, 2)]
    return [
        record(point, predict(record(point), H100).seconds * 1.1)
        for point in [*points, *others[0], *others[1]]
    ]


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("report") / "measured", *measured())


def test_a_report_without_a_profile_fits_one(folder: Path) -> None:
    outcome = run("calibrate", "report", folder)
    assert (outcome.code, outcome.err) == (0, "")
    assert "Constants of dgx-h100-calibrated" in outcome.out


def test_a_report_with_a_profile_compares_it_with_the_shipped_one(folder: Path) -> None:
    outcome = run("calibrate", "report", folder, "--profile", "dgx-a100-80gb")
    assert outcome.code == 0
    assert ("Profile dgx-a100-80gb" in outcome.out, "with dgx-h100" in outcome.out) == (True, True)


@pytest.mark.parametrize(("name", "begins"), [("r.md", "# Cal"), ("r.html", "<!DOCTYPE html>")])
def test_the_name_of_a_page_says_its_format(
    folder: Path, tmp_path: Path, name: str, begins: str
) -> None:
    target = tmp_path / name
    outcome = run("calibrate", "report", folder, "--profile", "dgx-h100", "-o", target)
    assert (outcome.code, outcome.out) == (0, f"wrote {target}\n")
    assert target.read_text("utf-8").startswith(begins)


def test_a_chinese_page_is_chinese(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "r.md"
    run("calibrate", "report", folder, "--profile", "dgx-h100", "-o", target, "--lang", "zh")
    assert target.read_text("utf-8").startswith("# dgx-h100 的校准\n")


@pytest.mark.parametrize("name", ["report.docx", "report", "-"])
def test_another_format_is_wrong_usage(folder: Path, name: str) -> None:
    outcome = run("calibrate", "report", folder, "-o", name)
    assert (outcome.code, "must end with .html, .md, .pdf" in outcome.err) == (2, True)


def test_a_folder_of_rejected_points_is_reported_with_a_profile(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", rejected(all_reduce(8), "faster than light"))
    outcome = run("calibrate", "report", folder, "--profile", "dgx-h100")
    assert (outcome.code, "faster than light" in outcome.out) == (0, True)


def test_a_folder_of_rejected_points_has_nothing_to_fit(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", rejected(all_reduce(8), "faster than light"))
    outcome = run("calibrate", "report", folder)
    assert (outcome.code, "faster than light" in outcome.err) == (2, True)


def test_an_empty_folder_is_wrong_input(tmp_path: Path) -> None:
    outcome = run("calibrate", "report", tmp_path, "--profile", "dgx-h100")
    assert (outcome.code, "no measurements" in outcome.err) == (2, True)


def test_a_report_cannot_be_written_over_a_folder(folder: Path) -> None:
    target = folder.parent / "is-a-folder.md"
    target.mkdir(exist_ok=True)
    outcome = run("calibrate", "report", folder, "--profile", "dgx-h100", "-o", target)
    assert outcome.code == 2


def test_a_narrow_terminal_still_shows_which_points_are_furthest_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "48")
    out = run("calibrate", "check", folder, "--profile", "dgx-h100").out
    listed = " ".join(out.partition("Largest errors")[2].split())
    assert ("gemm bf16: 256 x 4096 x 4096" in listed, "point" in listed) == (True, True)


def test_columns_of_a_narrow_fit_name_what_they_are_of(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = run("calibrate", "fit", folder, "--out", tmp_path / "p.toml").out
    titles = next(line for line in out.splitlines() if line.startswith("block"))
    assert titles.count("p90") == titles.count("left-out p90") + titles.count("base p90")


def test_points_that_the_fit_has_seen_are_not_called_held_out(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "gemm", *(r for r in measured() if r.point.what == "gemm"))
    out = " ".join(run("calibrate", "report", folder).out.split())
    assert ("has seen all of these points" in out, "Held out are" in out) == (True, False)
