"""Storage on the network of a step: which links it loads, what it costs, what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simulator.api import Forecaster
from simulator.conditions import Conditions
from simulator.cost.network.network import Network
from simulator.diagnosis import find_causes
from simulator.files import parse_record
from simulator.parallel.checkpoint import stage_checkpoint
from simulator.parallel.layout import ParallelLayout
from simulator.results import Category
from simulator.storage import Storage, storage_notes, storage_of
from simulator.topology.network_file import NetworkFile
from simulator.topology.routes.storage import storage_loads, storage_switches
from simulator.topology.topology import Topology
from simulator.units import GB
from tests.fakes import NIC, fake_node, fake_profile, tiny_job, tiny_model
from tests.simulator.cost.network.networks import network_on, two_racks
from tests.simulator.steps import forecaster

ONE_A_NODE = fake_profile(node=fake_node(domain_size=1, accelerators=1))
EIGHT = ParallelLayout(dp=8)
RACKS = two_racks(1.0, joins=4)
"""Two leaves of four nodes of one NIC, each with one uplink of four NICs to the spine."""


def network() -> Network:
    return replace(network_on(ONE_A_NODE, RACKS, 8), algorithms={"all_reduce": "ring"})


def storage(**said: Any) -> Storage:
    """Return the storage that a file's table describes."""
    file = parse_record(NetworkFile, {"storage": said}, "here")
    found, problems = storage_of(file, network(), 1, "here")
    assert not problems
    assert found is not None
    return found


def loads_by_name(topology: Topology, loads: np.ndarray) -> dict[str, float]:
    return {topology.link_name(int(link)): float(loads[link]) for link in np.flatnonzero(loads)}


def test_what_all_nodes_write_meets_at_the_spine() -> None:
    topology = network().topology
    assert topology.fabric is not None
    loads = storage_loads(topology, storage_switches(topology.fabric, None), writes=True)
    assert loads_by_name(topology, loads) == {
        **{f"node{n}/nic0 -> leaf{n // 4}": 1.0 for n in range(8)},
        "leaf0 -> spine0": 4.0,
        "leaf1 -> spine0": 4.0,
    }


def test_what_all_nodes_read_of_one_leaf_leaves_the_other_over_the_spine() -> None:
    topology = network().topology
    assert topology.fabric is not None
    loads = storage_loads(topology, storage_switches(topology.fabric, "leaf1"), writes=False)
    assert loads_by_name(topology, loads) == {
        **{f"leaf{n // 4} -> node{n}/nic0": 1.0 for n in range(8)},
        "leaf1 -> spine0": 4.0,
        "spine0 -> leaf0": 4.0,
    }


def test_a_node_that_holds_the_storage_receives_what_the_others_write() -> None:
    found = storage(units=[2], write="1 GB/s", checkpoint_every=10)
    assert found.writes is not None
    topology = network().topology
    into = [
        float(weight)
        for link, weight in zip(found.writes.links, found.writes.weights, strict=True)
        if topology.link_name(int(link)) == "leaf0 -> node2/nic0"
    ]
    assert into == [7.0]


def cast_with(found: Storage | None) -> Forecaster:
    plain = forecaster(EIGHT, profile=ONE_A_NODE, model=tiny_model(), job=tiny_job())
    return plain.under(Conditions(network=network(), storage=found))


def test_reads_take_their_part_of_the_nics_from_a_reduction() -> None:
    """A ring all-reduce fills each NIC; reads at half a NIC leave it the other half, in one way."""
    alone, beside = (
        cast_with(found).simulate(EIGHT).breakdown.seconds[Category.DATA_COMM]
        for found in (None, storage(read=f"{NIC / 2 / GB} GB/s"))
    )
    assert beside == pytest.approx(2 * alone)


def test_a_rank_writes_its_part_of_all_parameters_and_states() -> None:
    """14 bytes a parameter: 2 of weights, 4 + 4 + 4 of states, once over all eight replicas."""
    cast = cast_with(None)
    program = cast.program(EIGHT)
    assert stage_checkpoint(program, 0) == pytest.approx(14 * cast.trainable_parameters / 8)


def test_stages_and_tensor_ranks_write_what_they_hold() -> None:
    cast = forecaster(ParallelLayout(tp=2, pp=2, dp=2))
    program = cast.program(ParallelLayout(tp=2, pp=2, dp=2))
    whole = sum(4 * stage_checkpoint(program, stage) for stage in range(2))
    # Norms and biases that both tensor ranks hold are written by both.
    assert 1.0 <= whole / (14 * cast.trainable_parameters) < 1.03


def test_a_checkpoint_costs_the_steps_in_which_it_is_written() -> None:
    """The mean over 1000 steps: so many of them beside writes that take a half of each NIC."""
    found = storage(write=f"{NIC / 2 / GB} GB/s", checkpoint_every=1000)
    cast, program = cast_with(found), cast_with(None).program(EIGHT)
    plain = cast_with(None).simulate(EIGHT).step_time
    reduction = cast_with(None).simulate(EIGHT).breakdown.seconds[Category.DATA_COMM]
    writing = plain + reduction
    steps = 14 * cast.trainable_parameters / 8 / (NIC / 2) / writing
    result = cast.simulate(EIGHT)
    assert result.step_time == pytest.approx(plain + reduction * steps / 1000)
    assert result.breakdown.total == pytest.approx(result.step_time)
    (told,) = storage_notes(found, program, result.step_time)
    assert told in result.provenance.warnings


def test_a_checkpoint_that_is_never_done_before_the_next_one_is_told() -> None:
    found = storage(write="1 kB/s", checkpoint_every=2)
    (told,) = storage_notes(found, cast_with(None).program(EIGHT), 1.0)
    assert told.endswith("longer than the 2 steps until the next, so that it never ends")


def test_the_diagnosis_says_what_reads_and_writes_cost() -> None:
    found = storage(read=f"{NIC / 4 / GB} GB/s", write=f"{NIC / 2 / GB} GB/s", checkpoint_every=1)
    cast = cast_with(found)
    causes = find_causes(cast, EIGHT, cast.simulate(EIGHT))
    gains = {cause.what: cause.seconds for cause in causes}
    assert gains["writing of checkpoints"] > gains["reading of the dataset"] > 0


def test_storage_on_a_network_of_its_own_holds_up_nothing() -> None:
    found = storage(nics="own", read="1 TB/s", write="1 TB/s", checkpoint_every=10)
    plain, beside = (cast_with(each).simulate(EIGHT).step_time for each in (None, found))
    assert beside == plain


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ({"switches": "core*", "read": "1 GB/s"}, "cluster.network.storage.switches"),
        ({"units": [8], "read": "1 GB/s"}, "cluster.network.storage.units"),
        ({"units": [1, 1], "read": "1 GB/s"}, "cluster.network.storage.units"),
        ({"read": "11 GB/s"}, "cluster.network.storage.read"),
        ({"write": "11 GB/s", "checkpoint_every": 1}, "cluster.network.storage.write"),
    ],
)
def test_what_the_cluster_does_not_have_is_refused(said: dict[str, Any], key: str) -> None:
    file = parse_record(NetworkFile, {"storage": said}, "here")
    found, problems = storage_of(file, network(), 1, "here")
    assert (found, [(each.where, each.key) for each in problems]) == (None, [("here", key)])
