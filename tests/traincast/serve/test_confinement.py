"""The page reads its folder and what is shipped; every way out of it is refused in words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from simulator.errors import InputError
from traincast.serve.confinement import check_names
from traincast.serve.evaluation import Asked, Question, answer


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.toml", "link/secret.toml"])
@pytest.mark.parametrize(
    "text",
    [
        'model = "{}"\n',
        '[cluster]\nprofile = "{}"\n',
        '[layout]\nschedule_file = "{}"\n',
        '[search]\nrank_order = ["packed", "{}"]\n',
        '[run.failures]\nrates = ["{}"]\n',
        '[cluster.network]\ntopology = "{}"\n',
    ],
)
def test_a_file_outside_of_the_folder_is_refused(name: str, text: str, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.toml").write_text("secret = 1\n")
    (inside / "link").symlink_to(tmp_path)
    found = answer(Asked(question=Question.ESTIMATE, text=text.format(name), folder=str(inside)))
    (problem,) = found.problems
    assert "leads out of the folder of this page" in problem.rule
    assert (problem.found, bool(problem.fix)) == (name, True)
    assert "secret = 1" not in str(problem)


def test_names_of_what_is_shipped_and_files_of_the_folder_are_read(tmp_path: Path) -> None:
    table = {"title": "/a title", "model": "llama3-8b", "cluster": {"profile": "./own.toml"}}
    check_names(table, "scenario.toml", tmp_path)


def test_every_way_out_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        check_names({"model": "/a", "job": {"stack": "../b"}}, "scenario.toml", tmp_path)
    assert [each.key for each in caught.value.problems] == ["model", "job.stack"]


def test_a_file_of_the_folder_leads_no_further_either(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside.toml"
    inside.mkdir()
    outside.write_text("secret = 1\n")
    program = (
        "import sys; from pathlib import Path; from traincast.serve.confinement import confine\n"
        "inside, outside = map(Path, sys.argv[1:])\n"
        "(inside / 'own').write_text('kept'); confine(inside)\n"
        "print((inside / 'own').read_text())\n"
        "from simulator.hardware.profile import load_profile\n"
        "print(load_profile('dgx-h100').name)\n"
        "from simulator.files import read_text; read_text(outside)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(inside), str(outside)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["kept", "dgx-h100"]
    assert "leads out of the folder of this page" in done.stderr
