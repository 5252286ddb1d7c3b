"""A plan becomes points in the order of their value, within the time that it promises."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from calibrate.batches import Batch, DeviceFacts, World
from calibrate.group_ranks import ranks_of
from calibrate.operators import TRAFFIC, Operator
from calibrate.pairing import pairs_to_try
from calibrate.payloads import elements_of
from calibrate.plan import expand, load_plan, plan_names
from calibrate.plan_file import Plan
from calibrate.points import (
    AttentionPoint,
    CollectivePoint,
    GemmPoint,
    GroupKind,
    InterferencePoint,
    LayerPart,
    LayerPoint,
    MemoryBoundPoint,
    Point,
    SoakPoint,
    StepPoint,
    Timing,
    Upkeep,
    UpkeepPoint,
    key_of,
)
from calibrate.records import Fingerprint
from calibrate.spread import spread_points
from simulator.errors import InputError
from simulator.files import parse_record
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmLayout, MemoryClass
from simulator.parallel.checks import check_layout
from simulator.parallel.groups import Collective
from simulator.units import GB, GIB, MIB
from simulator.workload.load import load_model
from simulator.workload.stack import load_stack

CPU = DeviceFacts(
    device="cpu",
    devices=1,
    memory=16e9,
    dtypes=(Dtype.FP32,),
    flops=100e9,
    bandwidth=10e9,
    fingerprint=Fingerprint(),
)
GPU = DeviceFacts(
    device="cuda",
    devices=8,
    memory=140e9,
    dtypes=(Dtype.BF16, Dtype.FP16, Dtype.FP8, Dtype.TF32, Dtype.FP32),
    flops=600e12,
    bandwidth=4e12,
    fingerprint=Fingerprint(),
)
ALONE = World()
NODE = World(size=8, local_size=8)
WORLDS = (
    World(),
    World(size=2, local_size=2),
    World(size=2, local_size=1),
    World(size=3, local_size=3),
    World(size=3, local_size=1),
    World(size=4, local_size=1),
    World(size=6, local_size=2),
    NODE,
    World(size=32, local_size=8),
    World(size=24, local_size=8),
)
MODEL = {"default": ["gpt2"], "seq_length": 128}


def made(**sections: object) -> Plan:
    return parse_record(Plan, sections, "test")


def points_of(batches: tuple[Batch, ...]) -> list[Point]:
    return [point for batch in batches for point in batch.points]


def expanded(plan: Plan, world: World = ALONE, facts: DeviceFacts = CPU) -> list[Point]:
    return points_of(expand(plan, world, facts))


def collectives(points: list[Point]) -> list[CollectivePoint]:
    return [point for point in points if isinstance(point, CollectivePoint)]


@pytest.mark.parametrize("facts", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("world", [World(), World(size=2, local_size=2), NODE], ids=str)
@pytest.mark.parametrize(("name", "minutes"), [("quick", 5), ("standard", 12)])
def test_a_shipped_plan_keeps_to_its_time(
    name: str, minutes: float, world: World, facts: DeviceFacts
) -> None:
    batches = expand(load_plan(name), world, facts)

    assert sum(batch.seconds for batch in batches) <= 60 * minutes


@pytest.mark.parametrize(
    ("name", "facts"),
    [("quick", CPU), ("standard", GPU), ("full", GPU)],
    ids=["quick", "standard", "full"],
)
@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_every_planned_collective_can_be_run_by_the_world(
    name: str, facts: DeviceFacts, world: World
) -> None:
    points = points_of(expand(load_plan(name), world, facts))

    for point in collectives(points):
        assert len(ranks_of(point, world)[0]) == point.ranks
        assert elements_of(point) > 0
    assert len({key_of(point) for point in points}) == len(points)


@pytest.mark.parametrize("name", plan_names())
def test_batches_are_named_for_files_and_say_how_long_each_point_takes(name: str) -> None:
    batches = expand(load_plan(name), World(size=32, local_size=8), GPU)

    assert all(batch.name.replace("-", "").isalnum() for batch in batches)
    assert all(len(batch.each) == len(batch.points) for batch in batches)
    assert len({batch.name for batch in batches}) == len(batches)


def test_one_process_measures_no_collective() -> None:
    points = points_of(expand(load_plan("full"), World(), GPU))

    assert not collectives(points)
    assert not any(isinstance(point, InterferencePoint) for point in points)


def test_the_products_of_llama_come_first_in_all_three_layouts() -> None:
    plan = made(model={"default": ["llama3.1-8b"], "seq_length": 4096}, gemm={})
    gemms = [point for point in expanded(plan, facts=GPU) if isinstance(point, GemmPoint)]

    # Queries 32 x 128 and keys and values 8 x 128 each are 6144 wide; gate and up 2 x 14336.
    shapes = {(gemm.layout, gemm.m, gemm.n, gemm.k) for gemm in gemms}
    assert gemms[0] == GemmPoint(dtype=Dtype.BF16, m=4096, n=6144, k=4096)
    assert (GemmLayout.FORWARD, 4096, 28672, 4096) in shapes
    assert (GemmLayout.INPUT_GRADIENT, 4096, 4096, 28672) in shapes
    assert (GemmLayout.WEIGHT_GRADIENT, 28672, 4096, 4096) in shapes


def test_weight_gradients_are_also_added_to_float32() -> None:
    plan = made(model=MODEL, gemm={})
    gemms = [point for point in expanded(plan) if isinstance(point, GemmPoint)]

    added = {(g.m, g.n, g.k) for g in gemms if g.accumulate}
    plain = {(g.m, g.n, g.k) for g in gemms if g.layout is GemmLayout.WEIGHT_GRADIENT}
    assert added == plain
    assert all(g.layout is GemmLayout.WEIGHT_GRADIENT for g in gemms if g.accumulate)


def test_tensor_parallel_shares_that_the_model_cannot_have_are_left_out() -> None:
    plan = made(model={**MODEL, "tp": [1, 2, 5]}, layers={"parts": ["layer"]})
    layers = [point for point in expanded(plan) if isinstance(point, LayerPoint)]

    assert {layer.tp for layer in layers} == {1, 2}


def test_a_slow_device_takes_the_smaller_model_and_a_fast_one_the_larger() -> None:
    plan = made(model={"default": ["llama3.1-8b", "gpt2"]}, layers={"parts": ["layer"]})

    def model(facts: DeviceFacts) -> str:
        (point, _) = expanded(plan, facts=facts)
        assert isinstance(point, LayerPoint)
        return point.model

    assert (model(CPU), model(GPU)) == ("gpt2", "llama3.1-8b")


def test_the_sequence_of_a_model_asked_for_is_halved_until_a_layer_runs_in_time() -> None:
    plan = made(model={"default": ["gpt2"], "seq_length": 4096}, layers={"parts": ["layer"]})
    points = points_of(expand(plan, World(), CPU, model="llama3.2-1b"))

    # A layer has 61 M parameters: 0.2 s at 100 GFLOP/s are 20 GFLOP, 164 tokens; the least is 128.
    assert [p.seq for p in points if isinstance(p, LayerPoint)] == [128, 128]


def test_forward_and_backward_of_every_part_but_the_optimizer_are_timed() -> None:
    points = expanded(made(model=MODEL, layers={}))

    passes = [(p.part, p.backward) for p in points if isinstance(p, LayerPoint)]
    both = [(part, side) for part in LayerPart for side in (False, True)]
    assert passes == [each for each in both if each != (LayerPart.OPTIMIZER, True)]


def test_any_first_part_of_the_spread_shapes_covers_all_octants_of_sizes() -> None:
    octants = {tuple(u >= 0.5 for u in point) for point in islice(spread_points(3), 24)}

    assert len(octants) == 8


def test_spread_products_run_in_time_and_have_all_layouts() -> None:
    plan = made(gemm={"model": False, "spread": 30}, sizes={"run": "100 ms"})
    gemms = [point for point in expanded(plan) if isinstance(point, GemmPoint)]

    assert len(gemms) == 30
    assert all(2 * g.m * g.n * g.k <= 0.1 * CPU.flops for g in gemms)
    assert {g.layout for g in gemms[:10]} == set(GemmLayout)
    assert all(size % 64 == 0 and size >= 256 for g in gemms for size in (g.m, g.n, g.k))


def test_spread_attention_has_both_passes_of_each_shape() -> None:
    plan = made(attention={"model": False, "spread": 4})
    points = [point for point in expanded(plan) if isinstance(point, AttentionPoint)]

    assert [point.backward for point in points] == [False, True] * 4
    assert all(point.heads % point.kv_heads == 0 for point in points)


def test_one_operator_of_each_class_comes_before_the_others() -> None:
    points = [p for p in expanded(made(memory_bound={})) if isinstance(p, MemoryBoundPoint)]
    operators = list(dict.fromkeys(point.operator for point in points))

    first = [TRAFFIC[Operator(name)].memory_class for name in operators[: len(MemoryClass)]]
    assert sorted(first) == sorted(MemoryClass)
    assert set(operators) == set(Operator)


def test_memory_bound_sizes_end_where_the_device_would_take_too_long() -> None:
    points = [p for p in expanded(made(memory_bound={})) if isinstance(p, MemoryBoundPoint)]

    assert max(point.bytes for point in points) <= 1.01 * 0.2 * 10e9


def test_the_soak_comes_behind_the_shapes_and_in_front_of_what_is_timed_hot() -> None:
    points = expanded(load_plan("quick"), facts=GPU)

    hot = [i for i, p in enumerate(points) if isinstance(p, GemmPoint) and p.sustained]
    soak = next(i for i, p in enumerate(points) if isinstance(p, SoakPoint))
    assert soak + 1 == hot[0]
    assert len(hot) == 3


def test_collectives_begin_with_two_ranks_and_all_ranks_at_coarse_sizes() -> None:
    plan = made(collectives={"between": 1, "most": "1 MiB"})
    first, *_ = expand(plan, NODE, GPU)
    points = collectives(list(first.points))

    curve = [1024.0 * 4**power for power in range(6)]
    assert [p.bytes for p in points[:12]] == 2 * curve
    assert [p.ranks for p in points[:12]] == [2] * 6 + [8] * 6
    assert all(p.collective is Collective.ALL_REDUCE for p in points[:12])
    assert {p.ranks for p in points} == {2, 8}


def test_four_ranks_sizes_in_between_and_isolated_calls_come_later() -> None:
    plan = made(
        collectives={"between": 1, "most": "1 MiB", "timing": ["device", "isolated"]},
    )
    _, second = expand(plan, NODE, GPU)
    points = collectives(list(second.points))

    sizes = {p.bytes for p in points}
    assert points[0].ranks == 4
    assert 2048.0 in sizes
    assert points[-1].timing is Timing.ISOLATED


def test_collectives_over_nodes_use_every_group_that_the_world_has() -> None:
    plan = made(collectives={"operations": ["all_reduce"], "most": "1 KiB"})
    points = collectives(expanded(plan, World(size=32, local_size=8), GPU))

    assert [(p.group, p.ranks, p.nodes) for p in points] == [
        (GroupKind.FIRST, 2, 1),
        (GroupKind.FIRST, 8, 1),
        (GroupKind.FIRST, 32, 4),
        (GroupKind.FIRST, 4, 1),
        (GroupKind.ONE_A_NODE, 4, 4),
        (GroupKind.HALVES, 16, 4),
        (GroupKind.RAILS, 4, 4),
    ]


def test_hosts_of_one_rank_measure_pairs_of_hosts_and_halves() -> None:
    plan = made(collectives={"operations": ["all_reduce", "sendrecv"], "cpu_most": "1 KiB"})
    points = collectives(expanded(plan, World(size=4, local_size=1)))

    assert [(p.collective, p.group, p.ranks, p.nodes) for p in points] == [
        (Collective.ALL_REDUCE, GroupKind.FIRST, 2, 2),
        (Collective.ALL_REDUCE, GroupKind.FIRST, 4, 4),
        (Collective.SEND_RECV, GroupKind.PAIR, 2, 2),
        (Collective.ALL_REDUCE, GroupKind.HALVES, 2, 2),
    ]


def test_sizes_are_smaller_between_cpus() -> None:
    plan = made(collectives={"most": "4 GB", "cpu_most": "2 MiB"})
    points = collectives(expanded(plan, World(size=2, local_size=2), CPU))

    assert max(point.bytes for point in points) <= 2 * MIB


def test_sizes_of_collectives_end_where_memory_does() -> None:
    small = GPU.model_copy(update={"memory": 1 * GIB})
    points = collectives(expanded(made(collectives={}), NODE, small))

    # Half of the memory is used, for what is sent and what is received.
    assert max(point.bytes for point in points) <= GIB / 4


def test_cpu_ranks_of_a_node_share_its_memory() -> None:
    plan = made(collectives={"cpu_most": "100 GB"})
    points = collectives(expanded(plan, World(size=4, local_size=4), CPU))

    assert max(point.bytes for point in points) <= 16 * GB / 4 / 2 / 2


def test_three_ranks_share_whole_elements() -> None:
    points = collectives(expanded(load_plan("standard"), World(size=3, local_size=3)))

    assert all(point.bytes % (4 * point.ranks) == 0 for point in points if point.ranks == 3)


def test_every_rank_of_many_is_tried_at_every_distance() -> None:
    pairs = pairs_to_try(64, all_up_to=16)

    assert all(sum(rank in pair for pair in pairs) >= 6 for rank in range(64))
    assert len(pairs) == len(set(pairs)) < 64 * 63 / 2
    assert all(0 <= first < second < 64 for first, second in pairs)


def test_all_pairs_of_few_ranks_are_tried() -> None:
    points = collectives(expanded(made(pairs={}), NODE, GPU))

    assert len(points) == 8 * 7 / 2
    assert all(point.group is GroupKind.PAIR for point in points)


def test_a_step_fills_the_world_where_dp_is_left_out() -> None:
    step = {
        "job": {"global_batch_size": 8, "seq_length": 64, "precision": "fp32"},
        "layout": {"tp": 2},
        "layers": 2,
        "bucket_bytes": "1 MiB",
    }
    (point,) = expanded(made(model=MODEL, step=[step]), World(size=4, local_size=1))

    assert isinstance(point, StepPoint)
    assert (point.model, point.layout.dp, point.bucket_bytes) == ("gpt2", 2, MIB)


def test_every_step_that_does_not_fit_the_world_is_named() -> None:
    job = {"global_batch_size": 8, "seq_length": 64}
    steps = [{"job": job, "layout": {"pp": 3}}, {"job": job}, {"job": job, "layout": {"dp": 3}}]
    steps[1]["layout"] = {}
    with pytest.raises(InputError) as caught:
        expand(made(model=MODEL, step=steps), World(size=4, local_size=1), CPU)

    assert [problem.key for problem in caught.value.problems] == ["step.0.layout", "step.2.layout"]


def test_training_steps_come_alone_and_then_on_all_ranks() -> None:
    plan = made(model=MODEL, training={"layers": [2, 4], "all_ranks": True})
    steps = [p for p in expanded(plan, World(size=2, local_size=2)) if isinstance(p, StepPoint)]

    found = [(p.layers, p.layout.dp, p.job.global_batch_size) for p in steps]
    assert found == [(2, 1, 1), (4, 1, 1), (2, 2, 2), (4, 2, 2)]


def test_training_steps_are_legal_for_their_stack() -> None:
    points = points_of(expand(load_plan("full"), World(size=4, local_size=2), CPU))
    steps = [point for point in points if isinstance(point, StepPoint)]

    assert steps
    for step in steps:
        stack, spec = load_stack(step.job.stack), load_model(step.model).spec
        check_layout(spec, step.job, stack, step.layout)


def test_a_model_that_does_not_fit_is_not_trained() -> None:
    small = CPU.model_copy(update={"memory": 1 * GB})
    points = expanded(made(model=MODEL, launch=True, training={}), facts=small)

    assert not any(isinstance(point, StepPoint) for point in points)


def test_a_plan_that_needs_a_model_and_names_none_is_refused() -> None:
    with pytest.raises(InputError, match="--model"):
        expand(made(layers={}), World(), CPU)


def test_a_plan_of_collectives_is_refused_for_one_process() -> None:
    with pytest.raises(InputError, match="nothing of it can be measured"):
        expand(made(collectives={}), World(), CPU)


def test_a_misspelt_plan_is_told_apart_from_a_file() -> None:
    with pytest.raises(InputError, match="did you mean 'quick'"):
        load_plan("quik")


def test_a_file_says_all_that_is_wrong_in_it(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[soak]\nduration = 10\n[gemm]\nspred = 3\n[limits]\nblocks = 1\n")
    with pytest.raises(InputError) as caught:
        load_plan(file)

    keys = {problem.key for problem in caught.value.problems}
    assert keys == {"soak.duration", "gemm.spred", "limits.blocks"}


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"gemm": {"spread": 10**9}}, "gemm.spread"),
        ({"memory_bound": {"least": "0 B"}}, "memory_bound.least"),
        ({"memory_bound": {"between": 10**9}}, "memory_bound.between"),
        ({"memory_bound": {"factor": 10**400}}, "memory_bound.factor"),
        ({"host_copy": {"least": "0 B"}}, "host_copy.least"),
        ({"collectives": {"least": "0 B"}}, "collectives.least"),
        ({"pairs": {"cpu_bytes": "0 B"}}, "pairs.cpu_bytes"),
        ({"apart": {"cpu_bytes": ["0 B"]}}, "apart.cpu_bytes.0"),
        ({"model": {"default": ["gpt2"], "tp": [10**12]}}, "model.tp.0"),
        ({"training": {"micro_batches": [10**18]}}, "training.micro_batches.0"),
    ],
)
def test_a_plan_that_would_never_end_is_refused(section: dict[str, object], key: str) -> None:
    with pytest.raises(InputError, match=key):
        parse_record(Plan, section, "plan.toml")


def test_data_ranks_of_layers_ask_for_what_their_parameters_cost() -> None:
    plan = made(model={**MODEL, "tp": [1, 2]}, layers={"parts": ["layer"], "dp": [2]})
    points = [point for point in expanded(plan) if isinstance(point, UpkeepPoint)]

    assert [(point.work, point.tp, point.dp) for point in points] == [
        (Upkeep.UPDATE, 1, 1),
        *((work, 1, 2) for work in Upkeep),
        (Upkeep.UPDATE, 2, 1),
        *((work, 2, 2) for work in Upkeep if work is not Upkeep.BUCKETS),
    ]


def test_shares_of_more_ranks_than_measure_at_once_are_left_out() -> None:
    layers = {"parts": ["layer"], "dp": [2, 4], "ranks": "all"}
    plan = made(model={**MODEL, "tp": [1, 2]}, layers=layers)
    pair = World(size=2, local_size=2)
    points = [p for p in points_of(expand(plan, pair, GPU)) if isinstance(p, UpkeepPoint)]

    assert {(point.tp, point.dp) for point in points} == {(1, 1), (1, 2), (2, 1)}
    assert {point.ranks for point in points} == {2}
