"""Orders of ranks against every order of four nodes of two, and known cases by hand."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.placement_moves import axis_orders, exchanged, exchanges
from planner.placement_proof import prove_places
from planner.placement_score import Goal, order_at, score_of
from planner.placement_search import search_places
from planner.placement_traffic import Demand
from simulator.errors import InputError
from simulator.parallel.layout import Axis, ParallelLayout
from simulator.topology.places import places_of
from simulator.topology.routing import Router
from simulator.topology.topology import Topology
from tests.simulator.topology.machines import built, table

PODS = {"kind": "fat-tree", "tiers": [{"joins": 2, "oversubscription": 4}, {}]}
CUBE = ParallelLayout(tp=2, dp=2, pp=2)


def nodes(count: int, fabric: Mapping[str, Any]) -> Topology:
    """Return nodes of two accelerators around a switch."""
    return built(table({"kind": "nvswitch", "accelerators": 2}, fabric), count)


def demand(
    bytes_of: dict[Axis, float], layout: ParallelLayout = CUBE, relay: bool = True
) -> Demand:
    topology = nodes(layout.world_size // 2, PODS)
    return Demand(router=Router(topology, relay=relay), layout=layout, bytes_of=bytes_of)


def brute_force(given: Demand) -> tuple[float, float]:
    """Return the least seconds and the least bytes between switches of all 40,320 orders.

    All groups of the cube are pairs, which exchange the bytes of their axis both ways.
    """
    topology = given.router.topology
    ends = np.indices((8, 8)).reshape(2, -1)
    shares = np.zeros((64, topology.links))
    np.add.at(shares, given.router.shares(*ends)[:2], given.router.shares(*ends)[2])
    orders = np.array(list(permutations(range(8))))
    seconds, crossing = np.zeros(len(orders)), np.zeros(len(orders))
    for axis, stride in ((Axis.TENSOR, 1), (Axis.DATA, 2), (Axis.PIPELINE, 4)):
        sent = np.zeros((len(orders), 64))
        for rank in range(8):
            pair = orders[:, rank] * 8 + orders[:, rank ^ stride]
            sent[np.arange(len(orders)), pair] += given.bytes_of.get(axis, 0.0)
        loads = sent @ shares
        seconds += (loads / topology.capacity).max(axis=1)
        crossing += loads[:, topology.first_fabric :].sum(axis=1)
    return float(seconds.min()), float(crossing.min())


TRAFFIC = [
    {Axis.TENSOR: 8e9, Axis.DATA: 2e9, Axis.PIPELINE: 1e9},
    {Axis.TENSOR: 1e9, Axis.DATA: 2e9, Axis.PIPELINE: 8e9},
    {Axis.TENSOR: 1e9, Axis.DATA: 8e9, Axis.PIPELINE: 1e9},
    {Axis.DATA: 1e9, Axis.PIPELINE: 1e9},
]


@pytest.mark.parametrize(
    ("bytes_of", "relay"), [(TRAFFIC[0], False), *((traffic, True) for traffic in TRAFFIC)]
)
def test_no_order_of_four_nodes_of_two_is_better_than_the_one_found(
    bytes_of: dict[Axis, float], relay: bool
) -> None:
    given = demand(bytes_of, relay=relay)
    seconds, crossing = brute_force(given)
    busiest = search_places(given, goal=Goal.BUSIEST_LINK).after.seconds
    tiers = search_places(given, goal=Goal.CROSS_TIER).after.crossing
    assert (busiest, tiers) == pytest.approx((seconds, crossing))


def test_looking_at_all_orders_finds_the_same() -> None:
    layout = ParallelLayout(tp=2, pp=3)
    topology = nodes(3, {"kind": "flat"})
    given = Demand(
        router=Router(topology), layout=layout, bytes_of={Axis.TENSOR: 1e9, Axis.PIPELINE: 3e9}
    )
    searched, proven = search_places(given), prove_places(given)
    assert proven.proven
    assert proven.evaluated == 720
    assert searched.after.seconds == pytest.approx(proven.after.seconds)


def test_progress_is_told_of_every_order_that_is_looked_at() -> None:
    given = Demand(
        router=Router(nodes(3, {"kind": "flat"})),
        layout=ParallelLayout(tp=2, pp=3),
        bytes_of={Axis.TENSOR: 1e9, Axis.PIPELINE: 3e9},
    )
    told: list[tuple[int, int]] = []
    found = search_places(given, budget=50, progress=lambda *known: told.append(known))
    looked = [done for done, _ in told]
    assert looked == sorted(set(looked))
    assert looked[-1] == found.evaluated
    assert {total for _, total in told if total > 50} <= {found.evaluated}


def test_the_pipeline_goes_inside_the_node_where_it_carries_most() -> None:
    """Eight GB each way over 300 GB/s NVLink beside 45 GB/s of a NIC; one GB of dp crosses."""
    layout = ParallelLayout(dp=4, pp=2)
    given = Demand(
        router=Router(nodes(4, {"kind": "flat"})),
        layout=layout,
        bytes_of={Axis.DATA: 1e9, Axis.PIPELINE: 8e9},
    )
    found = search_places(given)
    assert found.start == "pp-dp"
    assert found.before.seconds == pytest.approx(8 / 45 + 0.5 / 45, rel=1e-6)
    assert found.after.seconds == pytest.approx(8 / 300 + 1 / 45)


def test_neighbours_are_put_below_one_leaf() -> None:
    """Pairs of nodes that exchange gradients, placed in different pods, come together."""
    layout = ParallelLayout(tp=2, dp=2, pp=2)
    given = demand({Axis.TENSOR: 8e9, Axis.PIPELINE: 4e9}, layout)
    found = search_places(given, goal=Goal.CROSS_TIER)
    units = found.places.accelerators.reshape(2, 2, 2) // 2
    assert found.before.crossing > 0
    assert found.after.crossing == 0
    assert (units[0, :, 0] // 2 == units[1, :, 0] // 2).all()


def test_what_an_exchange_gains_is_exact() -> None:
    given = demand({Axis.TENSOR: 3e9, Axis.DATA: 2e9, Axis.PIPELINE: 1e9})
    before = np.arange(8)
    for move in exchanges(4, 2, 100):
        after = exchanged(before, *move)
        for axis in given.groups:
            changed = given.loads(axis, before)
            added = given.change(axis, before, after)
            changed = changed if added is None else changed + added
            assert np.allclose(changed, given.loads(axis, after), atol=1.0)


def test_experts_send_to_everyone_and_stages_to_the_next() -> None:
    """ep = 4 over two nodes: 2/3 of the bytes of a rank leave its node."""
    layout = ParallelLayout(dp=4, ep=4)
    topology = nodes(2, {"kind": "flat"})
    given = Demand(router=Router(topology), layout=layout, bytes_of={Axis.EXPERT: 3e9})
    score = order_at(given, np.arange(4)).score
    assert score.leaving == pytest.approx(4 * 2e9)


def test_the_score_names_the_fullest_link() -> None:
    topology = nodes(2, {"kind": "flat"})
    loads = np.zeros(topology.links)
    loads[topology.first_up] = 90e9
    score = score_of(topology, {Axis.DATA: loads})
    assert score.axes[0].link == "node0/nic0 -> switch"
    assert score.seconds == pytest.approx(2.0)


def test_axis_orders_are_permutations_of_ranks_and_begin_with_block() -> None:
    orders = axis_orders(ParallelLayout(tp=2, cp=3, dp=2, pp=5))
    assert len(orders) == 24
    assert next(iter(orders.values())).tolist() == list(range(60))
    assert all(sorted(order) == list(range(60)) for order in orders.values())


def test_the_same_input_gives_the_same_places_which_a_file_keeps(tmp_path: Path) -> None:
    given = demand({Axis.TENSOR: 1e9, Axis.DATA: 8e9, Axis.PIPELINE: 2e9})
    one, other = search_places(given, budget=50), search_places(given, budget=50)
    assert one.places.accelerators.tolist() == other.places.accelerators.tolist()
    path = tmp_path / "places.csv"
    path.write_text(one.places.csv(), "utf-8")
    read = places_of(str(path), given.router.topology)
    assert read.accelerators.tolist() == one.places.accelerators.tolist()


def test_more_ranks_than_accelerators_is_an_error() -> None:
    given = Demand(
        router=Router(nodes(2, {"kind": "flat"})),
        layout=ParallelLayout(tp=8),
        bytes_of={Axis.TENSOR: 1.0},
    )
    with pytest.raises(InputError, match="at most 4 can be placed"):
        search_places(given)


def test_only_few_ranks_can_be_proven() -> None:
    layout = ParallelLayout(tp=2, dp=5)
    given = Demand(
        router=Router(nodes(5, {"kind": "flat"})), layout=layout, bytes_of={Axis.DATA: 1.0}
    )
    with pytest.raises(InputError, match="at most 8 can be placed"):
        prove_places(given)
