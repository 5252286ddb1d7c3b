"""`simulate --figure` draws the network of a step, and says where there is none."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import tomlkit

from tests.traincast.command_line import run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def small(folder: Path) -> Path:
    """Return a scenario of two nodes with the network of their profile."""
    document = tomlkit.parse((EXAMPLES / "llama3.1-8b-dgx-h100.toml").read_text("utf-8")).unwrap()
    document["cluster"] |= {"nodes": 2, "network": {}}
    document["layout"].pop("dp", None)
    path = folder / "scenario.toml"
    path.write_text(tomlkit.dumps(document))
    return path


def test_the_picture_names_the_busiest_link_of_the_step(tmp_path: Path) -> None:
    scenario, figure = small(tmp_path), tmp_path / "network.svg"
    outcome = run("simulate", scenario, "--figure", figure, "--json", "-")
    busiest = outcome.record["network"]["links"][0]
    named = f"{100 * busiest['utilisation']:.1f} %"
    assert (outcome.code, outcome.err) == (0, "")
    drawn = "".join(ET.fromstring(figure.read_text("utf-8")).itertext())
    assert "The fullest of all links: " in drawn
    assert named in drawn


def test_without_a_network_there_is_nothing_to_draw(tmp_path: Path) -> None:
    figure = tmp_path / "network.svg"
    outcome = run("simulate", EXAMPLES / "lan-ddp.toml", "--figure", figure)
    assert (outcome.code, outcome.out, figure.exists()) == (2, "", False)
    assert "--figure: without it no fabric ever holds up a NIC" in outcome.err
    assert "fix: add a [cluster.network] table" in outcome.err


def test_another_format_is_refused_before_anything_is_simulated(tmp_path: Path) -> None:
    outcome = run("simulate", small(tmp_path), "--figure", tmp_path / "network.jpeg", "--json", "-")
    assert (outcome.code, outcome.out) == (2, "")
    assert "must end with .png or .svg" in outcome.err


def test_a_picture_does_not_overwrite_the_scenario(tmp_path: Path) -> None:
    scenario = small(tmp_path)
    outcome = run("simulate", scenario, "--figure", scenario)
    assert (outcome.code, "would overwrite the input" in outcome.err) == (2, True)
