"""A backward pass in two parts: what goes where, and what stays between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.hardware.accelerator import Dtype
from simulator.parallel.blocks import head_passes, layer_passes
from simulator.parallel.layout import ParallelLayout, Recompute
from simulator.parallel.shard import Shard, make_shard
from simulator.parallel.split_backward import kept_for_weights, split_backward
from simulator.parallel.work import CommWork
from simulator.workload.job import Recipe
from tests.fakes import fake_stack, tiny_job, tiny_model
from tests.simulator.steps import forecaster

H, TOKENS = 64, 32


def shard_of(*, tp: int = 1, sequence_parallel: bool = False, **kernels: object) -> Shard:
    layout = ParallelLayout(tp=tp, sequence_parallel=sequence_parallel)
    return make_shard(layout, tiny_job(), fake_stack(kernels=kernels), 8)


def gpt_layer(shard: Shard) -> float:
    (layer,) = set(tiny_model().layers())
    passes = layer_passes(layer, shard, Recompute.NONE)
    return kept_for_weights(passes, shard)


def test_a_gpt_layer_keeps_32_h_bytes_a_token_as_in_the_paper() -> None:
    assert gpt_layer(shard_of()) == 32 * H * TOKENS


def test_tensor_parallel_ranks_keep_their_part_of_the_inner_widths() -> None:
    # Inputs h + h/2 + h + 4h/2 and gradients 3h/2 + h + 4h/2 + h, of 2 bytes: 20 h.
    assert gpt_layer(shard_of(tp=2)) == 20 * H * TOKENS


def test_an_input_gathered_again_stays_whole_until_the_weight_gradient() -> None:
    gathered = gpt_layer(shard_of(tp=2, sequence_parallel=True))
    assert gathered == gpt_layer(shard_of(tp=2)) == 20 * H * TOKENS


def test_the_head_keeps_its_input_and_the_gradient_of_the_logits() -> None:
    shard = shard_of()
    assert kept_for_weights(head_passes(H, 1024, shard), shard) == 2 * TOKENS * (H + 1024)


@given(
    tp=st.sampled_from((1, 2, 4)),
    spread=st.booleans(),
    accumulate=st.sampled_from((0.0, 6.0)),
)
def test_no_piece_is_lost_or_doubled(tp: int, spread: bool, accumulate: float) -> None:
    shard = shard_of(tp=tp, sequence_parallel=spread, accumulate_bytes=accumulate)
    (layer,) = set(tiny_model().layers())
    backward = layer_passes(layer, shard, Recompute.NONE).backward
    of_input, of_weights = split_backward(backward)
    names = [piece.name for piece in (*of_input.pieces, *of_weights.pieces)]
    assert sorted(names) == sorted(piece.name for piece in backward.pieces)
    assert not any(isinstance(piece, CommWork) for piece in of_weights.pieces)


def test_weight_gradients_and_biases_are_put_off() -> None:
    shard = shard_of(accumulate_bytes=6.0)
    (layer,) = set(tiny_model().layers())
    _, of_weights = split_backward(layer_passes(layer, shard, Recompute.NONE).backward)
    assert [piece.name for piece in of_weights.pieces] == [
        f"{name}.{part}"
        for name in ("mlp.down", "mlp.up", "attention.proj", "attention.qkv")
        for part in ("wgrad", "accumulate", "bias.grad")
        if any(p.name == f"{name}.{part}" for p in of_weights.pieces)
    ]


@pytest.mark.parametrize(
    ("recipe", "element"),
    [(Recipe.DELAYED, 1.0), (Recipe.MXFP8, 1 + 1 / 32), (Recipe.BLOCKWISE, 1 + 4 / 128)],
)
def test_a_narrow_layer_keeps_narrow_copies_with_their_scales(
    recipe: Recipe, element: float
) -> None:
    # Inputs 7 h and gradients 9 h, as in 16 bits.
    job = tiny_job(precision=Dtype.FP8, recipe=recipe)
    shard = make_shard(ParallelLayout(), job, fake_stack(), 8)
    assert gpt_layer(shard) == 16 * element * H * TOKENS


@pytest.mark.parametrize("recipe", [Recipe.DELAYED, Recipe.ROWWISE])
def test_casts_of_the_weight_gradient_alone_are_put_off(recipe: Recipe) -> None:
    job = tiny_job(precision=Dtype.FP8, recipe=recipe)
    layout = ParallelLayout(tp=2, sequence_parallel=True)
    shard = make_shard(layout, job, fake_stack(), 8, transposes=True)
    (layer,) = set(tiny_model().layers())
    of_input, of_weights = split_backward(layer_passes(layer, shard, Recompute.NONE).backward)
    cast = [".wgrad." in piece.name for piece in of_weights.pieces]
    assert (any(cast), any(".wgrad" in piece.name for piece in of_input.pieces)) == (True, False)


@pytest.mark.parametrize("tp", [1, 2])
def test_both_parts_take_as_long_as_the_whole_where_nothing_is_hidden(tp: int) -> None:
    layout = ParallelLayout(tp=tp)
    cast = forecaster(layout)
    program = cast.program(layout)
    whole = program.chunks[0].whole
    _, backward = cast.costs.segment(program, whole)
    of_input, of_weights = cast.costs.split_segment(program, whole)
    assert of_input.seconds + of_weights.seconds == pytest.approx(backward.seconds)


def test_a_collective_that_hid_behind_a_weight_gradient_is_exposed() -> None:
    layout = ParallelLayout(tp=2)
    stack = fake_stack(overlap={"tensor_backward": True})
    cast = forecaster(layout, stack=stack)
    program = cast.program(layout)
    whole = program.chunks[0].whole
    _, backward = cast.costs.segment(program, whole)
    of_input, of_weights = cast.costs.split_segment(program, whole)
    assert of_input.seconds + of_weights.seconds > backward.seconds
