"""`traincast topology`: show, check and import."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.simulator.topology.imports.test_nvidia_smi import DGX
from tests.simulator.topology.imports.test_slurm import TREE
from tests.traincast.command_line import run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "topologies" / "dgx-h100-two-to-one.toml"


@pytest.fixture(name="node")
def _node(tmp_path: Path) -> Path:
    path = tmp_path / "topo.txt"
    path.write_text(DGX)
    return path


def test_show_has_the_oversubscription_of_the_file() -> None:
    tiers = run("topology", "show", EXAMPLE, "--json", "-").record["tiers"]
    assert [tier["oversubscription"] for tier in tiers] == [pytest.approx(2.0), None]


def test_show_of_a_profile_takes_its_nodes() -> None:
    outcome = run("topology", "show", "dgx-h100", "--nodes", 4)
    assert (outcome.code, "32: 4 units of 8" in outcome.out) == (0, True)


def test_a_profile_without_nodes_is_one_domain() -> None:
    assert run("topology", "show", "gb200-nvl72", "--json", "-").record["accelerators"] == 72


def test_show_prints_the_route_of_each_pair() -> None:
    outcome = run("topology", "show", "dgx-h100", "--nodes", 2, "--pair", "0,9", "--pair", "1,1")
    assert "node0/gpu0 to node1/gpu1" in outcome.out
    assert "the same accelerator" in outcome.out


def test_show_draws_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "net.svg"
    outcome = run("topology", "show", "dgx-h100", "--nodes", 2, "--figure", path)
    assert (outcome.code, "<svg" in path.read_text()) == (0, True)


def test_check_says_that_a_file_is_fine() -> None:
    outcome = run("topology", "check", EXAMPLE)
    assert (outcome.code, f"{EXAMPLE}: fine (512 accelerators" in outcome.out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "dgx-h10"), "did you mean 'dgx-h100'?"),
        (("show", "none.toml"), "none.toml"),
        (("show", "dgx-h100", "--pair", "0-9"), "fix: --pair 0,9"),
        (("show", "dgx-h100", "--pair", "0,99"), "accelerators are numbered 0 to 7"),
        (("show", "dgx-h100", "--figure", "a.gif"), "must end with .png or .svg"),
        (("check", "README.md"), "is neither a .toml file nor a shipped profile"),
        (("import", "none.txt", "-o", "-"), "none.txt"),
        (("import", "none.txt", "-o", "-", "--link-bandwidth", "25"), '--link-bandwidth "25 GB/s"'),
        (("import", "none.txt", "-o", "none.txt"), "would overwrite the input"),
    ],
)
def test_a_wrong_argument_is_a_message(arguments: tuple[object, ...], message: str) -> None:
    outcome = run("topology", *arguments)
    assert (outcome.code, message in outcome.err) == (2, True)


def test_an_import_is_a_file_that_show_reads(node: Path, tmp_path: Path) -> None:
    conf, out = tmp_path / "topology.conf", tmp_path / "topology.toml"
    conf.write_text(TREE)
    given = ("--profile", "dgx-h100", "--socket-bandwidth", "22 GB/s")
    imported = run("topology", "import", node, conf, "-o", out, *given)
    # Where the path is long the line is broken, at spaces or within the path.
    shown = "".join(imported.out.split())
    assert (imported.code, f"{node}:nvidia-smitopo-m" in shown) == (0, True)
    assert run("topology", "show", out, "--json", "-").record["accelerators"] == 64


def test_a_profile_file_is_named_by_its_way_from_the_topology(node: Path, tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    shipped = (ROOT / "hardware_profiles" / "dgx-h100.toml").read_text()
    profile.write_text(shipped.replace('name = "dgx-h100"', 'name = "mine"'))
    out = tmp_path / "nets" / "topology.toml"
    out.parent.mkdir()
    given = ("--profile", profile, "--socket-bandwidth", "22 GB/s", "-o", out)
    assert run("topology", "import", node, *given).code == 0
    assert tomllib.loads(out.read_text())["profile"] == "../mine.toml"
    assert run("topology", "check", out).code == 0


def test_notes_of_an_import_are_printed(node: Path, tmp_path: Path) -> None:
    given = ("--profile", "dgx-h100", "--socket-bandwidth", "22 GB/s", "-o", tmp_path / "t.toml")
    assert "left out mlx5_8, mlx5_9" in run("topology", "import", node, *given).out


def test_an_import_to_standard_output_stands_alone(node: Path) -> None:
    given = ("--profile", "dgx-h100", "--socket-bandwidth", "22 GB/s", "--title", "mine", "-o", "-")
    outcome = run("topology", "import", node, *given)
    assert (tomllib.loads(outcome.out)["title"], outcome.err) == ("mine", "")


def test_an_import_that_fails_writes_nothing(node: Path, tmp_path: Path) -> None:
    out = tmp_path / "topology.toml"
    outcome = run("topology", "import", node, "-o", out)
    assert (outcome.code, out.exists(), "Traceback" in outcome.err) == (2, False, False)
