"""`traincast serve` says what it lacks before it listens."""

import sys
from pathlib import Path

import pytest

from tests.traincast.command_line import run


def test_without_dash_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dash", None)
    found = run("serve", "--no-browser")
    assert (found.code, found.out) == (2, "")
    assert 'pip install "traincast[serve]"' in found.err


def test_a_missing_scenario_or_folder_is_named(tmp_path: Path) -> None:
    scenario, folder = tmp_path / "none.toml", tmp_path / "none"
    for arguments in ((scenario,), ("--folder", folder)):
        found = run("serve", "--no-browser", *arguments)
        assert (found.code, found.out) == (2, "")
        assert str(arguments[-1]) in found.err
