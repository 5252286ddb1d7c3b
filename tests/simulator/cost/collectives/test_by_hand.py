"""Plans on a machine with round numbers, worked out by hand."""

from __future__ import annotations

import pytest

from simulator.cost.collectives.select import CollectiveCosts, plan_collective
from simulator.parallel.groups import Collective, GroupShape
from simulator.units import US
from tests.simulator.cost.collectives.machines import CONSTANTS, CURVED, machine

NODE = GroupShape(size=4, per_domain=4)
WHOLE_NODE = GroupShape(size=8, per_domain=8)
TWO_NODES = GroupShape(size=16, per_domain=8)
FOUR_NODES = GroupShape(size=32, per_domain=8)
RAIL = GroupShape(size=4, per_domain=1)
THREE = GroupShape(size=3, per_domain=3)


@pytest.mark.parametrize(
    ("collective", "algorithm", "group", "microseconds"),
    [
        # 10 start + 6 steps + 1.5 x 400 MB / 100 GB/s.
        (Collective.ALL_REDUCE, "ring", NODE, 10 + 6 + 6000),
        # 10 + 3 + 0.75 x 400 MB / 100 GB/s.
        (Collective.ALL_GATHER, "ring", NODE, 10 + 3 + 3000),
        (Collective.REDUCE_SCATTER, "ring", NODE, 10 + 3 + 3000),
        (Collective.ALL_TO_ALL, "pairwise", NODE, 10 + 3 + 3000),
        # 20 + 9/8 x 400 MB / 50 GB/s.
        (Collective.ALL_REDUCE, "nvls", WHOLE_NODE, 20 + 9000),
        (Collective.BROADCAST, "chain", NODE, 10 + 3 + 4000),
        (Collective.REDUCE, "chain", NODE, 10 + 3 + 4000),
        # Two rounds of 400 MB.
        (Collective.BROADCAST, "binomial", NODE, 10 + 2 + 8000),
        (Collective.SEND_RECV, "direct", NODE, 10 + 4000),
        # Push and pull, 3 x 400 MB each.
        (Collective.ALL_REDUCE, "parameter_server", NODE, 2 * (10 + 12000)),
        # One rank a node: 3 hops of 10 us, 0.75 x 400 MB / 10 GB/s.
        (Collective.ALL_GATHER, "ring", RAIL, 10 + 30 + 30000),
        # 3 of 4 blocks of 100 MB leave the node.
        (Collective.ALL_TO_ALL, "pairwise", RAIL, 10 + 3 + 10 + 30000),
        # 7 of 8 parts inside (7 peers), then half of it across (1 peer, 1 hop).
        (Collective.ALL_TO_ALL, "two_step", TWO_NODES, 10 + 7 + 3500 + 10 + 1 + 10 + 20000),
        # 30 steps, 3.75 of which are hops; 1.875 x 400 MB over 8 shares of 10 GB/s.
        (Collective.ALL_REDUCE, "ring", TWO_NODES, 10 + 26.25 + 37.5 + 9375),
        # 14 steps in the chain, 2 hops; 400 MB over 8 shares.
        (Collective.ALL_REDUCE, "tree", TWO_NODES, 10 + 14 + 20 + 8000),
        # 4 hops; 800 MB over 8 shares; the switch would take 9000 us.
        (Collective.ALL_REDUCE, "nvls_tree", FOUR_NODES, 20 + 40 + 10000),
        # Scatter and gather in the node, 6 hops of 75 MB between nodes.
        (Collective.ALL_REDUCE, "hierarchical", FOUR_NODES, 2 * (17 + 3500) + 70 + 7500),
        # Two rounds of 400 MB; 100 and 200 MB.
        (Collective.ALL_REDUCE, "recursive_doubling", NODE, 10 + 2 + 8000),
        (Collective.ALL_GATHER, "recursive_doubling", NODE, 10 + 2 + 3000),
        # One rank of three folds, two exchange, and it is told: 400 MB each.
        (Collective.ALL_REDUCE, "recursive_doubling", THREE, 10 + 3 + 12000),
        # Three rounds in the node, one hop with all 400 MB over one share.
        (Collective.ALL_REDUCE, "recursive_doubling", TWO_NODES, 10 + 3 + 12000 + 10 + 40000),
        # 200 MB cross; 7/16 of 400 MB stay inside.
        (Collective.ALL_GATHER, "recursive_doubling", TWO_NODES, 10 + 3 + 1750 + 10 + 20000),
        # 200, 100, 100 and 200 MB.
        (Collective.ALL_REDUCE, "recursive_halving", NODE, 10 + 4 + 6000),
        (Collective.REDUCE_SCATTER, "recursive_halving", NODE, 10 + 2 + 3000),
        # 400 MB before and after, 200 MB each way between the two.
        (Collective.ALL_REDUCE, "recursive_halving", THREE, 10 + 4 + 12000),
        # 350 MB in three rounds, 25 MB there and back in two hops, 350 MB.
        (Collective.ALL_REDUCE, "recursive_halving", TWO_NODES, 10 + 6 + 7000 + 20 + 5000),
        # Three messages of 100 MB at once, twice.
        (Collective.ALL_REDUCE, "all_pairs", NODE, 2 * (10 + 3 + 3000)),
        (Collective.ALL_GATHER, "all_pairs", NODE, 10 + 3 + 3000),
        (Collective.ALL_REDUCE, "ring_bidirectional", NODE, 10 + 6 + 6000),
        # Two by two: 200 MB along rows, 2 x 100 MB along columns, 200 MB along rows.
        (Collective.ALL_REDUCE, "torus_2d", NODE, 11 + 2000 + 12 + 2000 + 11 + 2000),
        (Collective.ALL_REDUCE, "torus_2d", RAIL, 20 + 20000 + 30 + 20000 + 20 + 20000),
        # 50 MB over each share, one hop up and down; two steps inside.
        (Collective.ALL_REDUCE, "sharp", FOUR_NODES, 10 + 2 + 10 + 7000),
        (Collective.ALL_REDUCE, "sharp", RAIL, 10 + 10 + 40000),
        (Collective.SEND_RECV, "direct", RAIL, 10 + 10 + 40000),
        (Collective.BROADCAST, "chain", RAIL, 10 + 30 + 40000),
        (Collective.ALL_REDUCE, "parameter_server", RAIL, 2 * (10 + 10 + 120000)),
    ],
)
def test_time_of_400_megabytes(
    collective: Collective, algorithm: str, group: GroupShape, microseconds: float
) -> None:
    plan = plan_collective(collective, 4e8, group, machine(), algorithm=algorithm)
    assert plan.seconds == pytest.approx(microseconds * US, rel=1e-12)


def test_bulk_protocol_and_chunk_copy_are_added_to_the_ring() -> None:
    # W = 3 MB = 3 x bulk_bytes, so 3/4 of 20 + 3 x 1 us; 0.5 x 1 MB is copied besides.
    plan = plan_collective(Collective.ALL_GATHER, 4e6, NODE, machine(constants=CURVED))
    assert plan.seconds == pytest.approx((10 + 3 + 0.75 * 23 + 30 + 5) * US, rel=1e-12)


def test_small_broadcasts_take_few_rounds_and_large_ones_the_chain() -> None:
    chosen = [
        plan_collective(Collective.BROADCAST, payload, WHOLE_NODE, machine()).algorithm
        for payload in (1e3, 1e9)
    ]
    assert chosen == ["binomial", "chain"]


def test_a_ring_over_nodes_is_limited_by_the_slower_of_its_links() -> None:
    slow = machine(bandwidth=1e9)
    plan = plan_collective(Collective.ALL_GATHER, 16e9, TWO_NODES, slow)
    assert plan.phases[0].wire_bytes / plan.phases[0].rate == pytest.approx(15.0)


def test_the_switch_is_not_asked_to_reduce_where_it_cannot() -> None:
    plain = machine(in_network_reduction=False)
    tiny_start = CONSTANTS.all_reduce.model_copy(update={"step_latency": 1.0})
    assert plan_collective(Collective.ALL_REDUCE, 1.0, WHOLE_NODE, plain).algorithm == "ring"
    slow_ring = machine(constants=CONSTANTS.model_copy(update={"all_reduce": tiny_start}))
    assert plan_collective(Collective.ALL_REDUCE, 1.0, WHOLE_NODE, slow_ring).algorithm == "nvls"


def test_one_copy_a_domain_crosses_the_network_and_is_spread_inside() -> None:
    # Half of the 200 MB that would leave: 100 MB at 10 GB/s; inside, 7/8 of 400 MB at 100 GB/s
    # run meanwhile. On a slow scale-up link they decide.
    seconds = [
        CollectiveCosts(machine(bandwidth=bandwidth))
        .plan(Collective.ALL_TO_ALL, 4e8, TWO_NODES, network_share=0.5)
        .seconds
        for bandwidth in (1e11, 1e10)
    ]
    assert seconds == pytest.approx([(10 + 15 + 10 + 10000) * US, (10 + 15 + 10 + 35000) * US])
