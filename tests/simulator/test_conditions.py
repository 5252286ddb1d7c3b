"""The cluster of a scenario as it is: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomlkit

from simulator.api import Forecaster
from simulator.conditions import Conditions, conditions_of
from simulator.errors import InputError
from simulator.scenario import load_scenario

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "llama3-70b-64-h100.toml"


def conditions(folder: Path, cluster: dict[str, Any], topology: str = "") -> Conditions:
    """Return the conditions of the example with more keys in its `[cluster]`."""
    (folder / "topology.toml").write_text(topology)
    document = tomlkit.parse(EXAMPLE.read_text()).unwrap()
    document["cluster"] |= cluster
    path = folder / "scenario.toml"
    path.write_text(tomlkit.dumps(document))
    return conditions_of(load_scenario(path))


def problems(folder: Path, cluster: dict[str, Any], topology: str = "") -> list[str]:
    """Return the keys of all that is wrong, in order."""
    with pytest.raises(InputError) as error:
        conditions(folder, cluster, topology)
    return [problem.key for problem in error.value.problems]


def test_a_sound_cluster_has_no_network_and_nothing_amiss(tmp_path: Path) -> None:
    found = conditions(tmp_path, {})
    assert (found.network, dict(found.slow), found.uniform) == (None, {}, True)


def test_everything_wrong_in_a_cluster_is_told_at_once(tmp_path: Path) -> None:
    cluster = {
        "slow": [{"ranks": [3, 64], "factor": 1.1}, {"ranks": [3], "factor": 1.2}],
        "network": {
            "changed": [{"link": "node0/nic9 -> nowhere", "factor": 0.5}],
            "background": [{"source": [0], "target": [64], "bandwidth": "1 GB/s"}],
            "algorithms": {"all_reduce": "rings"},
        },
    }
    assert problems(tmp_path, cluster) == [
        "cluster.slow.0.ranks",
        "cluster.slow.1.ranks",
        "cluster.network.background.0",
        "cluster.network.algorithms.all_reduce",
        "cluster.network.changed.0.link",
    ]


def test_a_topology_has_as_many_units_as_the_cluster_needs(tmp_path: Path) -> None:
    table = 'title = "two"\nunits = 2\n[unit]\nkind = "nvswitch"\n[fabric]\nkind = "flat"\n'
    cluster = {"nodes": 8, "network": {"topology": "topology.toml"}}
    found = conditions(tmp_path, cluster, table)
    assert found.network is not None
    assert found.network.topology.units == 8
    narrow = table.replace('"nvswitch"', '"nvswitch"\naccelerators = 3')
    assert problems(tmp_path, cluster, narrow) == ["unit"]


def test_cables_are_changed_both_ways_by_one_name(tmp_path: Path) -> None:
    changed = [{"link": "node3/nic2 <-> leaf*", "factor": 0.5}]
    network = conditions(tmp_path, {"network": {"changed": changed}}).network
    assert network is not None
    topology = network.topology
    links = [link for link, _ in topology.changed]
    assert sorted(links) == sorted(topology.opposite(link) for link in links)
    assert [topology.link_name(link)[:10] for link in links] == ["node3/nic2", "leaf0.2 ->"]


def test_every_link_has_an_opposite_between_the_same_devices(tmp_path: Path) -> None:
    network = conditions(tmp_path, {"network": {}}).network
    assert network is not None
    topology = network.topology
    for link in range(topology.links):
        one, _, other = topology.link_name(link).partition(" -> ")
        assert topology.link_name(topology.opposite(link)) == f"{other} -> {one}"


def test_a_failed_leaf_cuts_no_one_off_where_rails_relay(tmp_path: Path) -> None:
    changed = [{"link": "leaf0.2 <-> node*", "failed": True}]
    document = {"network": {"changed": changed}}
    network = conditions(tmp_path, document).network
    assert network is not None
    sound = conditions(tmp_path, {"network": {}})
    scenario = load_scenario(EXAMPLE)
    layout = scenario.file.layout
    assert layout is not None
    layout = layout.model_copy(update={"dp": 64 // (layout.tp * layout.pp * layout.cp)})
    cast = Forecaster.of(scenario)
    broken = Conditions(network=network)
    assert cast.under(broken).estimate(layout).step_time >= (
        cast.under(sound).estimate(layout).step_time
    )
