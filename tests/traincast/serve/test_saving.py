"""The page writes into its folder, whole files, and over nothing unasked."""

from pathlib import Path

import pytest

from simulator.errors import InputError
from traincast.serve.saving import save

TEXT = 'model = "llama3-8b"\n'


def test_a_scenario_is_saved_as_it_is(tmp_path: Path) -> None:
    assert save(TEXT, "a.toml", tmp_path, replace=False).read_text() == TEXT


def test_a_file_is_replaced_only_if_asked(tmp_path: Path) -> None:
    taken = tmp_path / "a.toml"
    taken.write_text("kept = 1\n")
    with pytest.raises(InputError, match="exists already"):
        save(TEXT, "a.toml", tmp_path, replace=False)
    assert taken.read_text() == "kept = 1\n"
    save(TEXT, "a.toml", tmp_path, replace=True)
    assert taken.read_text() == TEXT


@pytest.mark.parametrize(
    "name",
    [
        *("../out.toml", "/tmp/out.toml", "link/out.toml", "linked.toml", "", ".", "a.py"),
        *("none/out.toml", "folder.toml", "a\0.toml", "x" * 300 + ".toml"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    (inside / "folder.toml").mkdir(parents=True)
    (inside / "link").symlink_to(outside)
    (inside / "linked.toml").symlink_to(outside / "out.toml")
    with pytest.raises(InputError):
        save(TEXT, name, inside, replace=True)
    assert [each.name for each in tmp_path.rglob("out.toml")] == []
    assert list(outside.iterdir()) == []


def test_what_is_no_toml_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not valid TOML"):
        save("tp = ", "a.toml", tmp_path, replace=False)
    assert list(tmp_path.iterdir()) == []
