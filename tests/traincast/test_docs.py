"""Pages: generated ones do not drift, examples in hand-written ones run, links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from calibrate.validation import to_json, validate_rows
from planner import plan
from reports.records import plan_record
from simulator.parallel.layout import ScheduleName
from simulator.schedule.registry import build_schedule
from tests.planner.scenarios import gpt, machine
from tests.planner.scenarios import scenario as small_scenario
from tests.traincast.command_line import run
from traincast.docs import machine_output
from traincast.docs.__main__ import check_pages, drifted, write_pages
from traincast.docs.pages import builders
from traincast.docs.registries import drawing
from traincast.docs.samples import drifted_samples

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.M | re.S)
_LINK = re.compile(r"\[[^\]]*\]\((?!https?:|#|mailto:)([^)\s]+)\)")
_COMMAND = re.compile(r"^(?:\$ )?(traincast .+)$", re.M)
_TIMEOUT = 300


def blocks(path: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language, without their indentation."""
    found = _FENCE.findall(path.read_text("utf-8"))
    return [
        "\n".join(line.removeprefix(indent) for line in body.splitlines())
        for indent, name, body in found
        if name == language
    ]


WITH_PYTHON = [path for path in PAGES if blocks(path, "python")]
COMMANDS = sorted(
    {
        command.partition(" #")[0].strip()
        for path in ROOT.glob("README*.md")
        for block in blocks(path, "bash")
        for command in _COMMAND.findall(block)
    }
)


def _samples() -> list[tuple[str, str]]:
    """Return every command of the pages that is shown with what it says."""
    shown = [block for path in PAGES for block in blocks(path, "console") if block[0] == "$"]
    return [(command.removeprefix("$ "), said) for command, _, said in map(_parted, shown)]


def _parted(block: str) -> tuple[str, str, str]:
    return block.partition("\n")


@pytest.mark.parametrize(("command", "said"), [each for each in _samples() if each[1]])
def test_a_sample_of_the_pages_is_what_its_command_says(
    command: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    outcome = run(*shlex.split(command)[1:])
    assert (outcome.out + outcome.err).strip() == said.strip()


def test_samples_of_plans_are_what_the_example_says() -> None:
    assert drifted_samples(ROOT / "docs") == []


def test_no_reference_page_drifts() -> None:
    assert list(drifted(ROOT / "docs" / "reference")) == []


def test_the_check_names_a_page_that_drifts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pages(tmp_path)
    (tmp_path / "job.md").write_text("something else")
    (tmp_path / "old.md").write_text("nobody writes this any more")
    capsys.readouterr()
    assert check_pages(tmp_path) == 1
    assert [Path(line.split()[0]).name for line in capsys.readouterr().err.splitlines()] == [
        "job.md",
        "old.md",
    ]


def test_pages_are_the_same_every_time() -> None:
    assert {name: build() for name, build in builders().items()} == {
        name: build() for name, build in builders().items()
    }


def test_a_schedule_is_drawn_as_it_runs() -> None:
    schedule = build_schedule(ScheduleName.ONE_F_ONE_B, 2, 1, 3)
    assert drawing(schedule, 1).splitlines() == [
        "stage 0  01..aa2bb.cc",
        "stage 1  .0aa1bb2cc..",
    ]


def test_the_keys_of_validation_json_are_those_described(tmp_path: Path) -> None:
    table = tmp_path / "gemms.csv"
    table.write_text("gpu,dtype,m,n,k,time_us\na100_sxm,bfloat16,4096,4096,4096,600\n")
    found = to_json(validate_rows(table))
    assert (list(found["rows"][0]), list(found["groups"][0])) == (
        list(machine_output.ROW),
        list(machine_output.GROUP),
    )


def test_the_keys_of_plan_json_are_those_described() -> None:
    scenario = small_scenario(gpt(), nodes=1)
    found = plan_record(scenario, plan(scenario))
    assert (set(found), set(found["layouts"][0])) == (
        set(machine_output.PLAN),
        set(machine_output.LAYOUT),
    )


def test_the_keys_of_a_plan_without_layouts_are_those_described() -> None:
    scenario = small_scenario(gpt(), nodes=1, profile=machine(memory="1 GiB"))
    found = plan_record(scenario, plan(scenario))
    assert list(found["nearest"][0]) == list(machine_output.NEAREST)


@pytest.mark.parametrize("path", WITH_PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_blocks_of_a_page_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(path, "python"):
        exec(compile(block, str(path), "exec"), names)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_readme_succeed(command: str, tmp_path: Path) -> None:
    words = [
        str(ROOT / word) if (ROOT / word).exists() else word for word in shlex.split(command)[1:]
    ]
    done = subprocess.run(
        [sys.executable, "-m", "traincast", *words],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(path: Path) -> None:
    links = {link.partition("#")[0] for link in _LINK.findall(path.read_text("utf-8"))}
    assert [link for link in sorted(links) if not (path.parent / link).exists()] == []
