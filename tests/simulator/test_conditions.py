"""The cluster of a scenario as it is: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomlkit

from simulator.api import Forecaster
from simulator.conditions import SOUND, Conditions, conditions_of, estimate_notes, network_notes
from simulator.errors import InputError
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import ParallelLayout, ScheduleName
from simulator.scenario import load_scenario
from simulator.topology.network_file import BackgroundTraffic, JitterFile

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


def test_gradients_of_dualpipe_that_are_not_routed_are_told(tmp_path: Path) -> None:
    network = conditions(tmp_path, {"network": {}})
    dualpipe = ParallelLayout(pp=2, vpp=2, dp=2, schedule=ScheduleName.DUALPIPE)
    told = [bool(network_notes(network, each)) for each in (dualpipe, ParallelLayout(pp=2, dp=2))]
    assert (told, network_notes(Conditions(), dualpipe)) == ([True, False], ())


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


def test_an_estimate_says_what_it_leaves_out() -> None:
    traffic = BackgroundTraffic(source=(0,), target=(1,), bandwidth=1e9)
    jitter = JitterFile(deviation=0.1)
    texts = [
        estimate_notes(conditions)
        for conditions in (
            SOUND,
            Conditions(slow={3: 1.1}),
            Conditions(slow={3: 1.1, 4: 1.2}, jitter=jitter, background=(traffic,)),
        )
    ]
    rest = "; simulated steps have all of it"
    assert texts == [
        (),
        (f"closed-form estimates leave out 1 slow rank{rest}",),
        (f"closed-form estimates leave out 2 slow ranks, jitter and the traffic of others{rest}",),
    ]


def test_the_note_stands_in_estimates_and_not_in_simulated_steps(tmp_path: Path) -> None:
    found = conditions(tmp_path, {"slow": [{"ranks": [3], "factor": 1.1}]})
    scenario = load_scenario(tmp_path / "scenario.toml")
    layout = scenario.file.layout
    assert layout is not None
    cast, layout = Forecaster.of(scenario), layout.model_copy(update={"dp": 4})
    warnings = [
        result.provenance.warnings[-1:] == estimate_notes(found)
        for result in (cast.estimate(layout), cast.simulate(layout, spans=False))
    ]
    assert warnings == [True, False]


def test_the_parts_of_a_step_with_jitter_add_up_to_it(tmp_path: Path) -> None:
    jitter = {"deviation": 0.2, "steps": 2, "seed": 4}
    conditions(tmp_path, {"jitter": jitter, "slow": [{"ranks": [3], "factor": 1.1}]})
    scenario = load_scenario(tmp_path / "scenario.toml")
    layout = scenario.file.layout
    assert layout is not None
    cast = Forecaster.of(scenario)
    result = cast.simulate(layout.model_copy(update={"dp": 4}), spans=False)
    assert result.breakdown.total == pytest.approx(result.step_time)
    assert min(result.breakdown.seconds.values()) >= 0


def test_bytes_reach_their_target_over_a_link_that_hardly_carries_any(tmp_path: Path) -> None:
    changed = [{"link": "node0/nic0 <-> *", "bandwidth": "1 B/s"}]
    network = conditions(tmp_path, {"network": {"changed": changed, "relay": False}}).network
    assert network is not None
    loads = network.routes.loads(np.array([0]), np.array([8]), np.ones(1))
    into = [
        load
        for link, load in enumerate(loads)
        if network.topology.link_name(link).endswith("-> node1/gpu0")
    ]
    assert sum(into) == pytest.approx(1.0)


@pytest.mark.parametrize("reduces", [True, False])
def test_switches_of_a_topology_that_reduce_serve_sharp(tmp_path: Path, reduces: bool) -> None:
    word = "true" if reduces else "false"
    table = (
        'title = "t"\nunits = 8\n[unit]\nkind = "nvswitch"\n'
        f'[fabric]\nkind = "flat"\nreduces = {word}\n'
    )
    network = {"topology": "topology.toml", "algorithms": {"all_reduce": "sharp"}}
    if not reduces:
        assert problems(tmp_path, {"network": network}, table) == [
            "cluster.network.algorithms.all_reduce"
        ]
        return
    found = conditions(tmp_path, {"network": network}, table)
    cast = Forecaster.of(load_scenario(EXAMPLE)).under(found)
    group = GroupShape(size=64, per_domain=8)
    plan = cast.costs.collectives.plan(Collective.ALL_REDUCE, 1e9, group)
    assert plan.algorithm == "sharp"
