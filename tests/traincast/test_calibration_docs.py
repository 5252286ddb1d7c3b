"""Pages about calibration: their commands parse, their files are read, the reference is whole."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from calibrate.point_words import KINDS
from simulator.site_file import read_site
from traincast.cli import app
from traincast.docs.calibration_files import calibration_page
from traincast.docs.command_line import cli_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("README*.md"), *ROOT.glob("docs/how-to/*.md"), *ROOT.glob("docs/*.md")]
_BLOCK = re.compile(r"^```(?:bash|sh)\n(.*?)^```", re.M | re.S)
_TOML = re.compile(r"^```toml\n(partition.*?)^```", re.M | re.S)
_CALLED = re.compile(r"^.*?\btraincast calibrate (.+)$", re.M)
COMMANDS = sorted(
    {
        command
        for page in PAGES
        for block in _BLOCK.findall(page.read_text("utf-8"))
        for command in _CALLED.findall(block)
    }
)


def verbs() -> dict[str, Any]:
    root: Any = get_command(app)
    return dict(root.commands["calibrate"].commands)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_in_a_page_is_one_that_the_tool_takes(command: str) -> None:
    verb, *arguments = shlex.split(command, comments=True)
    parsed = verbs()[verb].make_context(verb, arguments)
    assert parsed.params


def test_pages_show_every_verb() -> None:
    assert {command.split()[0] for command in COMMANDS} == set(verbs())


def test_the_command_line_page_has_every_verb() -> None:
    page = cli_page()
    missing = [verb for verb in verbs() if f"## traincast calibrate {verb}\n" not in page]
    assert missing == []


def test_the_site_file_of_the_page_is_one_that_is_read(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/calibrate-your-cluster.md").read_text("utf-8")
    (text,) = _TOML.findall(page)
    (tmp_path / "site.toml").write_text(text)
    assert read_site(tmp_path / "site.toml").nodes == 4


def test_the_reference_describes_every_kind_of_point_once() -> None:
    page = calibration_page()
    assert [page.count(f"\n## {kind}\n") for kind in KINDS] == [1] * len(KINDS)
