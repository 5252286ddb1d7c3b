"""Casts to 8 and 4 bits by hand: bytes read, written, kept and sent of one linear layer."""

from __future__ import annotations

import pytest

from simulator.hardware.accelerator import Dtype
from simulator.parallel.blocks import layer_passes
from simulator.parallel.layout import ParallelLayout, Recompute
from simulator.parallel.linear import Linear, linear_backward, linear_forward
from simulator.parallel.numbers import numbers_of
from simulator.parallel.shard import Shard, make_shard
from simulator.parallel.work import CommWork, Piece
from simulator.workload.job import Dtypes, LoraTarget, Part, Recipe, TrainingJob
from simulator.workload.operator import Gemm, MemoryBound
from simulator.workload.stack_choices import AttentionKernel
from tests.fakes import fake_stack, tiny_job, tiny_model

TOKENS, K, N = 1000, 10, 100
INPUT, OUTPUT = TOKENS * K, TOKENS * N
UP = Linear(
    name="up",
    tokens=TOKENS,
    n=N,
    k=K,
    part=Part.MLP,
    kept_tokens=TOKENS,
    target=LoraTarget.FC1,
)
DOWN = Linear(name="down", tokens=TOKENS, n=N, k=K, part=Part.MLP, target=LoraTarget.FC2)


def job_of(recipe: Recipe, **changes: object) -> TrainingJob:
    precision = Dtype.FP4 if recipe in (Recipe.NVFP4, Recipe.MXFP4) else Dtype.FP8
    return tiny_job(precision=precision, recipe=recipe, **changes)


def shard_of(recipe: Recipe, *, hopper: bool = False, **layout: object) -> Shard:
    plan = ParallelLayout.model_validate(layout)
    return make_shard(plan, job_of(recipe), fake_stack(), 8, transposes=hopper)


def moved(pieces: list[Piece]) -> dict[str, float]:
    return {piece.name: piece.bytes for piece in pieces if isinstance(piece, MemoryBound)}


def kept(pieces: list[Piece]) -> float:
    return sum(piece.saved for piece in pieces if not isinstance(piece, CommWork))


def test_delayed_scaling_on_hopper_reads_16_bits_and_writes_a_copy_and_its_transpose() -> None:
    shard = shard_of(Recipe.DELAYED, hopper=True)
    both = [moved(linear_forward(DOWN, shard)), moved(linear_backward(DOWN, shard))]
    assert both == [{"down.cast": 4 * INPUT}, {"down.dgrad.cast": 4 * OUTPUT}]


def test_delayed_scaling_without_transposes_writes_one_copy() -> None:
    assert moved(linear_forward(DOWN, shard_of(Recipe.DELAYED))) == {"down.cast": 3 * INPUT}


def test_the_norm_in_front_of_a_layer_casts_with_delayed_scaling() -> None:
    hopper = moved(linear_forward(UP, shard_of(Recipe.DELAYED, hopper=True)))
    assert (hopper, moved(linear_forward(UP, shard_of(Recipe.DELAYED)))) == (
        {"up.cast": 2 * INPUT},
        {},
    )


def test_current_scaling_reads_once_more_for_the_maximum() -> None:
    shard = shard_of(Recipe.TENSORWISE, hopper=True)
    assert moved(linear_forward(UP, shard)) == {"up.cast": (2 + 2 + 1 + 1) * INPUT}


@pytest.mark.parametrize(
    ("recipe", "read", "copy"),
    [
        (Recipe.MXFP8, 2, 1 + 1 / 32),
        (Recipe.BLOCKWISE, 2, 1 + 4 / 128),
        (Recipe.NVFP4, 4, 0.5 + 1 / 16),
        (Recipe.MXFP4, 2, 0.5 + 1 / 32),
    ],
)
def test_block_scales_need_a_copy_along_rows_and_one_along_columns(
    recipe: Recipe, read: float, copy: float
) -> None:
    pieces = linear_forward(UP, shard_of(recipe))
    assert (moved(pieces), kept(pieces)) == ({"up.cast": (read + 2 * copy) * INPUT}, copy * INPUT)


def test_rowwise_keeps_16_bits_and_casts_them_again_with_the_weight() -> None:
    shard, weight = shard_of(Recipe.ROWWISE), K * N
    forward, backward = linear_forward(UP, shard), linear_backward(UP, shard)
    assert (kept(forward), moved(forward), moved(backward)) == (
        2 * INPUT,
        {"up.cast": 3 * INPUT, "up.weight.cast": 3 * weight},
        {
            "up.dgrad.cast": 4 * OUTPUT,
            "up.dgrad.weight.cast": 3 * weight,
            "up.wgrad.cast.input": 5 * INPUT,
        },
    )


def test_with_sequence_parallel_a_rank_casts_its_slice_and_transposes_what_it_gathered() -> None:
    shard = shard_of(Recipe.TENSORWISE, hopper=True, tp=2, sequence_parallel=True)
    forward, backward = linear_forward(UP, shard), linear_backward(UP, shard)
    assert (moved(forward), moved(backward)) == (
        {"up.cast": 5 * INPUT / 2},
        {"up.dgrad.cast": 6 * OUTPUT, "up.wgrad.cast.input": 2 * INPUT},
    )


def test_gathered_tensors_share_their_maximum_first() -> None:
    shard = shard_of(Recipe.TENSORWISE, tp=2, sequence_parallel=True)
    pieces = [*linear_forward(UP, shard), *linear_backward(DOWN, shard)]
    shared = [(p.name, p.payload) for p in pieces if isinstance(p, CommWork)]
    assert shared == [("up.amax", 4.0), ("down.grad.amax", 4.0)]


def test_all_three_products_of_layers_run_narrow_and_no_other() -> None:
    stack = fake_stack(kernels={"attention": AttentionKernel.UNFUSED})
    shard = make_shard(ParallelLayout(), job_of(Recipe.DELAYED), stack, 8)
    passes = layer_passes(tiny_model().layers()[0], shard, Recompute.NONE)
    gemms = [p for p in (*passes.forward.pieces, *passes.backward.pieces) if isinstance(p, Gemm)]
    narrow = {gemm.name for gemm in gemms if gemm.narrow}
    layers = ("attention.qkv", "attention.proj", "mlp.up", "mlp.down")
    assert narrow == {f"{name}{end}" for name in layers for end in ("", ".dgrad", ".wgrad")}


def gathers(recipe: Recipe | None) -> list[float]:
    job = tiny_job() if recipe is None else job_of(recipe)
    layout = ParallelLayout(tp=2, sequence_parallel=True)
    shard = make_shard(layout, job, fake_stack(), 8)
    passes = layer_passes(tiny_model().layers()[0], shard, Recompute.NONE)
    pieces = [*passes.forward.pieces, *passes.backward.pieces]
    found = {p.name: p.payload for p in pieces if isinstance(p, CommWork)}
    names = ("gather", "regather", "grad_input")
    own = [found[f"mlp.up.{name}"] for name in names]
    return [size / (32 * 64) for size in (*own, found["mlp.down.gather_grad"])]


@pytest.mark.parametrize(
    ("recipe", "bytes_each"),
    [
        (None, [2, 2, 2, 2]),
        (Recipe.DELAYED, [1, 1, 2, 1]),
        (Recipe.ROWWISE, [2, 2, 2, 2]),
        # Both copies of the output gradient travel.
        (Recipe.MXFP8, [1 + 1 / 32, 1 + 1 / 32, 2, 2 + 1 / 16]),
    ],
)
def test_sequence_parallel_gathers_what_was_cast_and_scatters_16_bits(
    recipe: Recipe | None, bytes_each: list[float]
) -> None:
    assert gathers(recipe) == bytes_each


@pytest.mark.parametrize(
    ("recipe", "hopper", "narrow", "bytes_each"),
    [
        # 16 bits, a copy and its transpose; the cast reads 2 and writes both.
        (Recipe.DELAYED, True, False, (4, 2, 4)),
        (Recipe.DELAYED, False, False, (3, 2, 3)),
        # The copy and its transpose alone, which is made of it.
        (Recipe.DELAYED, True, True, (2, 1, 2)),
        (Recipe.TENSORWISE, False, True, (1, 1, 0)),
        (Recipe.TENSORWISE, True, False, (4, 2, 6)),
        (Recipe.MXFP8, False, False, (2 + 2 * 33 / 32, 2, 2 + 2 * 33 / 32)),
        # Gathered in 16 bits, cast behind.
        (Recipe.MXFP8, False, True, (2 * 33 / 32, 2, 2 + 2 * 33 / 32)),
        (Recipe.ROWWISE, True, False, (2, 2, 0)),
        (Recipe.NVFP4, False, False, (2 + 2 * 9 / 16, 2, 4 + 2 * 9 / 16)),
    ],
)
def test_a_weight_is_held_and_sent_and_cast_in_these_bytes(
    recipe: Recipe, hopper: bool, narrow: bool, bytes_each: tuple[float, float, float]
) -> None:
    job = job_of(recipe, fp8_parameters=narrow)
    numbers = numbers_of(job, fake_stack(), ParallelLayout(), transposes=hopper)
    found = (numbers.narrow_parameter, numbers.narrow_gather, numbers.weight_cast)
    assert (found, numbers.parameter) == (bytes_each, 2)


def test_weights_that_zero_3_gathers_are_cast_in_each_pass_and_no_copy_stays() -> None:
    layout = ParallelLayout(dp=2, zero_stage=3)
    numbers = numbers_of(job_of(Recipe.DELAYED), fake_stack(), layout)
    shard = shard_of(Recipe.DELAYED, dp=2, zero_stage=3)
    casts = moved([*linear_forward(UP, shard), *linear_backward(UP, shard)])
    assert (numbers.narrow_parameter, numbers.weight_cast) == (2, 0)
    assert casts["up.weight.cast"] == casts["up.dgrad.weight.cast"] == 3 * K * N


def test_a_frozen_layer_casts_for_two_products_and_keeps_nothing() -> None:
    job = job_of(Recipe.MXFP8, freeze=(Part.MLP,))
    shard = changed_job(shard_of(Recipe.MXFP8), job)
    forward, backward = linear_forward(UP, shard), linear_backward(UP, shard)
    once = 3 + 1 / 32
    assert (kept(forward), moved(forward), moved(backward)) == (
        0.0,
        {"up.cast": once * INPUT},
        {"up.dgrad.cast": once * OUTPUT},
    )


def changed_job(shard: Shard, job: TrainingJob) -> Shard:
    return make_shard(ParallelLayout(tp=shard.tp), job, fake_stack(), 8)


def test_master_narrower_than_the_stack_is_taken_from_the_job() -> None:
    half = Dtypes(master=Dtype.BF16, state=Dtype.BF16, gradient=Dtype.BF16)
    job = tiny_job(dtypes=half)
    numbers = numbers_of(job, fake_stack(numerics={"gradient_bytes": 4.0}), ParallelLayout())
    assert (numbers.master, numbers.state, numbers.gradient, numbers.reduce) == (2, 2, 2, 2)


def test_experts_side_by_side_are_cast_one_by_one() -> None:
    experts = Linear(name="up", tokens=TOKENS, n=N, k=K, part=Part.EXPERTS, batch=4)
    shard = shard_of(Recipe.TENSORWISE)
    (cast,) = [p for p in linear_forward(experts, shard) if isinstance(p, MemoryBound)]
    (alone,) = [p for p in linear_forward(DOWN, shard) if isinstance(p, MemoryBound)]
    assert (cast.bytes, cast.launches, cast.count) == (alone.bytes, alone.launches, 4)
