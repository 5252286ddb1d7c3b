"""Every option that names an output refuses what cannot be written, before anything is computed.

The options are those of the parsers themselves: a new one is tested without being named here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tests.traincast.command_line import run
from traincast.cli import app

_FILES = ("OUT", "FILE", "FILE.toml", "FILE.csv")
_FOLDER = "DIR"
_NEEDED = {
    "--tool": ("torchtitan",),
    "--profile": ("dgx-h100",),
    "--out": ("out.toml",),
    "scenarios": ("one.toml", "two.toml"),
}
"""What an option or argument is given where an `in.toml` is of no use."""
_ENDINGS = {"--figure": ".svg", "--out": ".html"}
"""Of files whose names must say their format."""
_READS = "serve"
"""Its folder is one that must be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One option that names a file or a folder to write, and what its verb needs besides."""

    verb: tuple[str, ...]
    option: str
    is_folder: bool
    needed: tuple[str, ...]


def _outputs(path: tuple[str, ...], command: Any) -> Iterator[Output]:
    inner = getattr(command, "commands", None) or {}
    for name, child in inner.items():
        yield from _outputs((*path, name), child)
    for each in () if inner else command.params:
        option = each.opts[0]
        if option.startswith("--") and each.metavar in (*_FILES, _FOLDER) and path[0] != _READS:
            needed = tuple(_needed(command, option))
            yield Output(verb=path, option=option, is_folder=each.metavar == _FOLDER, needed=needed)


def _needed(command: Any, but: str) -> Iterator[str]:
    """Yield what a verb must be given; the files do not exist."""
    for each in command.params:
        name = each.opts[0]
        if each.required and name != but:
            yield from (name,) if name.startswith("-") else ()
            yield from _NEEDED.get(name, ("in.toml",))


OUTPUTS = {" ".join((*o.verb, o.option)): o for o in _outputs((), get_command(app))}


def test_the_parsers_have_outputs() -> None:
    assert {"simulate --json", "report --tables", "place --out"} <= set(OUTPUTS)


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_that_cannot_be_written_is_named_with_its_option_and_a_fix(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("kept")
    output, ending = OUTPUTS[name], _ENDINGS.get(OUTPUTS[name].option, ".json")
    wrong = ["taken/x" + ending, "x" * 300 + ending]
    for target in wrong if output.is_folder else [*wrong, "none/x" + ending]:
        outcome = run(*output.verb, *output.needed, output.option, target)
        said = outcome.err
        assert (outcome.code, f"{output.option}: " in said, "fix: " in said) == (2, True, True), (
            said
        )
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("taken", "kept")]
