"""The order of ranks that a scenario should have: what is sent, by hand, and what is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import tomlkit

from planner.placement_bytes import step_bytes
from planner.placement_score import Goal
from planner.placing import Placing, place
from simulator.api import Forecaster
from simulator.parallel.layout import Axis, ParallelLayout
from simulator.scenario import Scenario, load_scenario

RACKS = """
title = "two racks of two nodes, a quarter of their bandwidth between them"
profile = "dgx-h100"
units = 4
[unit]
kind = "nvswitch"
[fabric]
kind = "fat-tree"
[[fabric.tiers]]
joins = 2
oversubscription = 4.0
[[fabric.tiers]]
"""
LAYOUT = ParallelLayout(tp=8, pp=2, dp=2, sequence_parallel=True)
HIDDEN, SEQUENCE, BATCH, BF16 = 4096, 8192, 8, 2
MICRO_BATCHES = BATCH // 2
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def scenario(folder: Path, *, order: str | None = "cyclic") -> Scenario:
    """Return Llama 3.1 8B on two racks, its ranks in an order; None is without a network."""
    (folder / "racks.toml").write_text(RACKS)
    network = {"topology": "racks.toml", "rank_order": order}
    document = {
        "model": "llama3.1-8b",
        "cluster": {
            "profile": "dgx-h100",
            "nodes": 4,
            **({} if order is None else {"network": network}),
        },
        "job": {
            "global_batch_size": BATCH,
            "seq_length": SEQUENCE,
            "precision": "bf16",
            "stack": "megatron-core",
        },
        "layout": LAYOUT.model_dump(mode="json", exclude_unset=True),
    }
    path = folder / "scenario.toml"
    path.write_text(tomlkit.dumps(document))
    return load_scenario(path)


def placed(found: Scenario, goal: Goal = Goal.BUSIEST_LINK) -> Placing:
    return place(found, LAYOUT, goal=goal, budget=10)


@pytest.fixture(scope="module", name="from_cyclic")
def _from_cyclic(tmp_path_factory: pytest.TempPathFactory) -> Placing:
    return placed(scenario(tmp_path_factory.mktemp("cyclic")), Goal.CROSS_TIER)


def test_a_cyclic_order_gives_way_to_one_with_tensor_groups_inside_nodes(
    from_cyclic: Placing,
) -> None:
    nodes = from_cyclic.kept.places.accelerators.reshape(4, 8) // 8
    assert (nodes == nodes[:, :1]).all()
    assert sorted(nodes[:, 0].tolist()) == [0, 1, 2, 3]


def test_the_better_order_makes_the_step_shorter_and_crosses_less(from_cyclic: Placing) -> None:
    before, kept = from_cyclic.before, from_cyclic.kept
    assert kept is from_cyclic.found
    assert kept.step_time < before.step_time / 2
    assert from_cyclic.gain == pytest.approx(1 - kept.step_time / before.step_time)
    assert kept.score.crossing < before.score.crossing / 10


def test_activations_to_the_next_stage_are_counted_by_hand(from_cyclic: Placing) -> None:
    """A slice of a tensor rank for each micro-batch: 4 x 8192 x 4096 x 2 bytes / 8."""
    sent = MICRO_BATCHES * SEQUENCE * HIDDEN * BF16 / 8
    assert from_cyclic.bytes_of[Axis.PIPELINE] == pytest.approx(sent)


def test_gradients_are_counted_by_hand(tmp_path: Path) -> None:
    """Two replicas all-reduce each parameter of a rank once: its bytes, at a factor of 1."""
    found = scenario(tmp_path)
    forecaster = Forecaster.of(found)
    program = forecaster.program(LAYOUT)
    parameters = sum(program.stage_parameters(stage) for stage in range(2)) / 2
    sent = parameters * program.numbers.reduce
    assert step_bytes(forecaster, LAYOUT)[Axis.DATA] == pytest.approx(sent, rel=1e-3)


def test_a_good_order_is_kept(tmp_path: Path) -> None:
    found = placed(scenario(tmp_path, order="block"))
    assert (found.is_better, found.kept, found.gain) == (False, found.before, 0.0)


def test_an_order_that_makes_the_step_longer_is_not_kept(from_cyclic: Placing) -> None:
    worse = replace(from_cyclic, before=from_cyclic.found, found=from_cyclic.before)
    assert (worse.is_better, worse.kept, worse.gain) == (False, from_cyclic.found, 0.0)


def test_where_steps_are_as_long_the_one_that_asks_less_of_the_network_is_kept(
    from_cyclic: Placing,
) -> None:
    long = from_cyclic.before.step_time
    same = replace(from_cyclic, found=replace(from_cyclic.found, step_time=long))
    assert (same.is_better, same.gain) == (True, 0.0)
    assert not replace(same, found=same.before, before=same.found).is_better


def test_the_mean_step_of_local_sgd_sends_a_part_of_its_averages() -> None:
    """What is averaged once in `sync_every` steps is sent in each where all average."""
    found = load_scenario(EXAMPLES / "lan-local-sgd.toml")
    forecaster, layout = Forecaster.of(found), found.file.layout
    assert layout is not None
    each = layout.model_copy(update={"sync_every": 1})
    sent = step_bytes(forecaster, layout)[Axis.DATA] * layout.sync_every
    assert sent == pytest.approx(step_bytes(forecaster, each)[Axis.DATA])


def test_experts_and_their_gradients_have_axes_of_their_own() -> None:
    found = load_scenario(EXAMPLES / "mixtral-8x7b-64-h100.toml")
    layout = found.file.layout
    assert layout is not None
    filled = layout.model_copy(update={"dp": 64 // (layout.tp * layout.cp * layout.pp)})
    axes = set(step_bytes(Forecaster.of(found), filled))
    assert axes == {Axis.DATA, Axis.PIPELINE, Axis.EXPERT, Axis.EXPERT_DATA}


def test_a_scenario_without_a_network_has_that_of_its_profile(tmp_path: Path) -> None:
    found = scenario(tmp_path, order=None)
    plain = Forecaster.of(found).simulate(LAYOUT, spans=False).step_time
    assert placed(found).before.step_time == pytest.approx(plain)
