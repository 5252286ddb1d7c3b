"""Whole steps on networks whose effect can be worked out on paper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simulator.api import Forecaster
from simulator.conditions import Conditions
from simulator.cost.network.network import Network
from simulator.parallel.layout import ParallelLayout
from simulator.results import Category, StepResult
from simulator.schedule.tasks import WorkKind
from simulator.topology.network_file import JitterFile, JitterKind
from simulator.topology.routing import Router, Spreading
from tests.fakes import NIC, fake_node, fake_profile, tiny_job, tiny_model
from tests.simulator.cost.network.networks import network_on, two_racks
from tests.simulator.steps import forecaster, step_of

ONE_A_NODE = fake_profile(node=fake_node(domain_size=1, accelerators=1))
EIGHT = ParallelLayout(dp=8)
TWO_STAGES = ParallelLayout(dp=4, pp=2)
HIDDEN, LAYERS, VOCABULARY, POSITIONS = 64, 4, 1024, 32
GRADIENTS = 2 * (
    LAYERS * (12 * HIDDEN**2 + 13 * HIDDEN) + (2 * VOCABULARY + POSITIONS) * HIDDEN + 2 * HIDDEN
)
"""Bytes of the tiny model's gradients: layers of 4 h^2 and 8 h^2 weights with 9 h biases and 4 h of
norms, two embeddings, positions and the last norm, 2 bytes each."""
SENT = 32 * HIDDEN * 2
"""Bytes that one sequence takes to the next stage."""
NARROW = two_racks(8.0, joins=4)
"""Racks of four nodes, with an uplink of half a NIC."""


def cast_on(
    layout: ParallelLayout, network: Network | None, *, tied: bool = False, batch: int = 8
) -> Forecaster:
    """Return the forecaster of the tiny model on a network of single accelerators."""
    plain = forecaster(
        layout,
        profile=ONE_A_NODE,
        model=tiny_model(tie_word_embeddings=tied),
        job=tiny_job(global_batch_size=batch),
    )
    return plain if network is None else plain.under(Conditions(network=network))


def network_of(fabric: Mapping[str, Any], algorithm: str = "ring") -> Network:
    """Return eight nodes of one accelerator, whose all-reduces take one algorithm."""
    return replace(network_on(ONE_A_NODE, fabric, 8), algorithms={"all_reduce": algorithm})


def reduction(result: StepResult) -> float:
    return result.breakdown.seconds[Category.DATA_COMM]


@pytest.mark.parametrize(
    ("algorithm", "crossing"),
    [
        ("ring", 2 * 7 / 8),
        # Of NCCL's two trees over eight each has two edges between {0..3} and {4..7}: 0-4, 4-2 and
        # 7-3, 3-5. Each of the four carries s/2 up and s/2 down.
        ("tree", 4 / 2),
    ],
)
def test_gradients_take_what_crosses_the_uplink_over_its_bandwidth(
    algorithm: str, crossing: float
) -> None:
    cast = cast_on(EIGHT, network_of(NARROW, algorithm))
    found = [reduction(forecast) for forecast in (cast.estimate(EIGHT), cast.simulate(EIGHT))]
    assert found == pytest.approx([crossing * GRADIENTS / (NIC / 2)] * 2)


def test_four_pairs_of_a_pipeline_divide_an_uplink() -> None:
    """Forward and back: each gets an eighth of a NIC instead of a whole one."""
    wide, narrow = (
        cast_on(TWO_STAGES, network_of(fabric), batch=4).estimate(TWO_STAGES).step_time
        for fabric in (two_racks(1.0, joins=4), NARROW)
    )
    assert narrow - wide == pytest.approx(2 * (8 - 1) * SENT / NIC)


@pytest.mark.parametrize("seed", range(4))
def test_transfers_that_hash_to_one_uplink_share_it(seed: int) -> None:
    """Four uplinks of NIC speed; the routes of all pairs are traced one by one."""
    tiers = [{"joins": 4, "uplinks": 4, "bandwidth": "10 GB/s"}, {"switches": 4}]
    wide = network_of({"kind": "fat-tree", "tiers": tiers})
    router = Router(wide.topology, spreading=Spreading.HASH, seed=seed)
    hashed = replace(wide, routes=router).placed(wide.places)

    def most(pairs: list[tuple[int, int]]) -> int:
        links = [link for pair in pairs for link, _ in router.route(*pair)]
        return max(links.count(link) for link in links)

    extra = most([(r, r + 4) for r in range(4)]) + most([(r + 4, r) for r in range(4)]) - 2
    before, after = (
        cast_on(TWO_STAGES, network, batch=4).estimate(TWO_STAGES).step_time
        for network in (wide, hashed)
    )
    assert after - before == pytest.approx(extra * SENT / NIC)


@pytest.mark.parametrize("tied", [False, True])
def test_links_into_the_fabric_carry_what_all_ranks_send_and_no_more(tied: bool) -> None:
    network = network_of(two_racks(1.0, joins=4))
    cast = cast_on(TWO_STAGES, network, tied=tied, batch=4)
    step, topology = step_of(TWO_STAGES, cast), network.topology
    reduced = sum(
        phase.wire_bytes
        for work, cost in zip(step.graph.works, step.costs, strict=True)
        if work.kind in {WorkKind.REDUCE, WorkKind.TIED_REDUCE}
        for plan in cost.plans
        for phase in plan.phases
    )
    assert any(work.kind is WorkKind.TIED_REDUCE for work in step.graph.works) == tied
    into = sum(
        use.carried
        for use in cast.simulate(TWO_STAGES).links
        for link in use.links
        if topology.first_up <= link < topology.first_down
    )
    # Of a tied embedding each of the two stages has a task, and sends its own bytes once.
    assert into == pytest.approx(4 * (2 * SENT + reduced))


def test_tied_embeddings_of_two_stages_meet_nothing_but_others() -> None:
    """Both stages have a task of one all-reduce: it must not wait for itself."""
    layout = ParallelLayout(pp=8)
    model = tiny_model(tie_word_embeddings=True, num_hidden_layers=8)
    plain = forecaster(layout, profile=ONE_A_NODE, model=model, job=tiny_job(global_batch_size=1))
    network = network_of(two_racks(1.0, joins=4))
    found = plain.under(Conditions(network=network)).simulate(layout).step_time
    assert found == pytest.approx(plain.simulate(layout).step_time, rel=1e-9)


def test_jitter_of_eight_replicas_costs_the_expected_largest_of_eight_normal_draws() -> None:
    """They meet before the reduction and after the update: twice the maximum, 1.4236 deviations."""
    deviation, largest = 0.05, 1.4236003
    cast = cast_on(EIGHT, None)
    step = step_of(EIGHT, cast)
    passes = [sum(step.seconds(kind)) for kind in (WorkKind.FORWARD, WorkKind.BACKWARD)]
    update = sum(step.seconds(WorkKind.OPTIMIZER))
    jitter = JitterFile(distribution=JitterKind.NORMAL, deviation=deviation, steps=300, seed=3)
    drawn = cast.under(Conditions(jitter=jitter)).simulate(EIGHT, spans=False).drawn
    error = float(np.std(drawn, ddof=1)) / math.sqrt(len(drawn))
    longer = largest * deviation * (math.hypot(*passes) + update)
    expected = cast.estimate(EIGHT).step_time + longer
    assert float(np.mean(drawn)) == pytest.approx(expected, abs=4 * error)
    assert longer > 20 * error
