"""Scenarios of mixed clusters: what is read, what is refused, and their networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomlkit

from simulator.api import Forecaster
from simulator.conditions import conditions_of
from simulator.errors import InputError
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario, load_scenario
from simulator.units import GB

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "llama3-70b-mixed-h100-a100.toml"


def mixed(folder: Path, *parts: dict[str, Any], **tables: dict[str, Any]) -> Scenario:
    """Return the example with other parts, if any, and with more keys in its tables."""
    document = tomlkit.parse(EXAMPLE.read_text()).unwrap()
    if parts:
        document["cluster"]["part"] = list(parts)
    for table, keys in tables.items():
        document[table] = document.get(table, {}) | keys
    path = folder / "scenario.toml"
    path.write_text(tomlkit.dumps(document))
    return load_scenario(path)


def problems(folder: Path, *parts: dict[str, Any], **tables: dict[str, Any]) -> list[str]:
    """Return the keys of all that is wrong."""
    with pytest.raises(InputError) as caught:
        mixed(folder, *parts, **tables)
    return [problem.key for problem in caught.value.problems]


def part(profile: str, nodes: int = 8) -> dict[str, Any]:
    """Return a part as it stands in a file."""
    return {"profile": profile, "nodes": nodes}


def test_parts_stand_behind_each_other_in_node_order(tmp_path: Path) -> None:
    found = mixed(tmp_path, part("dgx-a100-80gb", 4), part("dgx-h200", 4))
    kinds = conditions_of(found).kind_of_ranks
    assert (found.world_size, found.mixed) == (128, True)
    assert kinds.tolist() == [0] * 64 + [1] * 32 + [2] * 32
    assert not mixed(tmp_path, part("dgx-h100")).mixed


def test_more_nodes_of_the_same_machine_are_one_larger_cluster(tmp_path: Path) -> None:
    split = mixed(tmp_path, part("dgx-h100"))
    whole = split.model_copy(
        update={
            "others": (),
            "file": split.file.model_copy(
                update={"cluster": split.file.cluster.model_copy(update={"nodes": 16, "part": ()})}
            ),
        }
    )
    layout = ParallelLayout(tp=8, pp=4, dp=4, zero_stage=1)
    one, other = (Forecaster.of(each).simulate(layout) for each in (whole, split))
    assert one == other


def test_all_that_keeps_parts_from_one_cluster_is_told_at_once(tmp_path: Path) -> None:
    assert problems(tmp_path, part("gh200-node"), part("dgx-a100-81gb")) == [
        "cluster.part.1.profile"
    ]
    sizes = ["cluster.part.0.profile"] * 2 + ["cluster.part.1.profile"] * 3
    assert problems(tmp_path, part("gh200-node"), part("local-cpu")) == sizes


def test_every_part_must_run_the_precision(tmp_path: Path) -> None:
    assert problems(tmp_path, part("dgx-a100-80gb"), job={"precision": "fp8"}) == ["job.precision"]


def test_a_part_that_others_follow_is_whole_scale_up_domains(tmp_path: Path) -> None:
    cluster = {"profile": "gb200-nvl72", "nodes": 8}
    found = problems(tmp_path, cluster=cluster | {"part": [part("gb300-nvl72", 18)]})
    assert found == ["cluster.nodes"]


def test_what_knows_one_machine_only_is_refused(tmp_path: Path) -> None:
    search = {"nodes": [8, 16], "choice": "robust"}
    assert problems(tmp_path, search=search) == ["search.nodes", "search.choice"]


def test_ranks_run_where_the_order_of_the_network_puts_them(tmp_path: Path) -> None:
    cluster = tomlkit.parse(EXAMPLE.read_text()).unwrap()["cluster"]
    found = mixed(tmp_path, cluster=cluster | {"network": {"rank_order": "cyclic"}})
    kinds = conditions_of(found).kind_of_ranks
    assert kinds[:32].tolist() == ([0] * 8 + [1] * 8) * 2


def test_cables_of_a_part_have_the_bandwidth_of_its_own_nics(tmp_path: Path) -> None:
    cluster = tomlkit.parse(EXAMPLE.read_text()).unwrap()["cluster"]
    network = conditions_of(mixed(tmp_path, cluster=cluster | {"network": {}})).network
    assert network is not None
    topology = network.topology
    up = topology.capacity[topology.first_up : topology.first_down].reshape(16, -1)
    assert np.allclose(up[:8], 0.95 * 50 * GB)
    assert np.allclose(up[8:], 0.95 * 25 * GB)
    narrow = [part("a100-4nic"), part("mi300x-node")]
    with pytest.raises(InputError) as caught:
        conditions_of(mixed(tmp_path, cluster=cluster | {"part": narrow, "network": {}}))
    assert [p.key for p in caught.value.problems] == [
        "cluster.part.0.profile",
        "cluster.part.1.profile",
    ]


def test_a_fabric_that_holds_nothing_up_changes_no_step_of_a_mixed_cluster(tmp_path: Path) -> None:
    cluster = tomlkit.parse(EXAMPLE.read_text()).unwrap()["cluster"]
    plain = mixed(tmp_path, cluster=cluster)
    networked = mixed(tmp_path, cluster=cluster | {"network": {}})
    for layout in (
        ParallelLayout(tp=8, pp=4, dp=4, zero_stage=1, sequence_parallel=True),
        ParallelLayout(tp=8, dp=16, zero_stage=1, sequence_parallel=True),
    ):
        one, other = (Forecaster.of(each).simulate(layout) for each in (plain, networked))
        assert other.step_time == pytest.approx(one.step_time, rel=1e-9)
