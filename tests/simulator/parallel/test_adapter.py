"""Low-rank adapters by hand: products, collectives, parameters, what stays, what is sent."""

from __future__ import annotations

import pytest

from simulator.parallel.blocks import embedding_passes, layer_passes
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ParallelLayout, Recompute
from simulator.parallel.linear import Linear, linear_backward, linear_forward
from simulator.parallel.matrices import Ranks, layer_matrices
from simulator.parallel.shard import Shard, make_shard
from simulator.parallel.traffic import reduced
from simulator.parallel.work import CommWork, Piece
from simulator.schedule.tasks import WorkKind
from simulator.workload.job import Lora, LoraTarget, Part
from simulator.workload.load import load_model
from simulator.workload.model import ModelSpec
from simulator.workload.operator import Gemm
from tests.fakes import fake_stack, tiny_job, tiny_model
from tests.simulator.steps import forecaster, step_of

TOKENS, RANK = 1000, 8
LORA = Lora(rank=RANK)
UP = Linear(
    name="up", tokens=TOKENS, n=100, k=10, part=Part.MLP, kept_tokens=1, target=LoraTarget.FC1
)
DOWN = Linear(name="down", tokens=TOKENS, n=10, k=100, part=Part.MLP, target=LoraTarget.FC2)


def shard_of(**layout: object) -> Shard:
    plan = ParallelLayout.model_validate(layout)
    return make_shard(plan, tiny_job(lora=LORA), fake_stack(), 8)


def products(pieces: list[Piece]) -> dict[str, tuple[int, int, int]]:
    return {piece.name: (piece.m, piece.n, piece.k) for piece in pieces if isinstance(piece, Gemm)}


def sent(pieces: list[Piece]) -> list[tuple[Collective, float]]:
    return [(piece.collective, piece.payload) for piece in pieces if isinstance(piece, CommWork)]


def test_an_adapter_adds_two_thin_products_and_no_weight_gradient_of_the_layer() -> None:
    shard = shard_of()
    assert products(linear_forward(UP, shard)) == {
        "up": (TOKENS, 100, 10),
        "up.lora.a": (TOKENS, RANK, 10),
        "up.lora.b": (TOKENS, 100, RANK),
    }
    assert products(linear_backward(UP, shard)) == {
        "up.dgrad": (TOKENS, 10, 100),
        "up.lora.b.dgrad": (TOKENS, RANK, 100),
        "up.lora.b.wgrad": (100, RANK, TOKENS),
        "up.lora.a.dgrad": (TOKENS, 10, RANK),
        "up.lora.a.wgrad": (RANK, 10, TOKENS),
    }


def test_beside_a_column_parallel_layer_the_narrow_tensor_is_gathered() -> None:
    shard = shard_of(tp=2)
    forward, backward = linear_forward(UP, shard), linear_backward(UP, shard)
    assert products(forward)["up.lora.a"] == (TOKENS, RANK // 2, 10)
    assert (sent(forward), sent(backward)) == (
        [(Collective.ALL_GATHER, 2 * TOKENS * RANK)],
        [(Collective.ALL_REDUCE, 2 * TOKENS * RANK), (Collective.ALL_REDUCE, 2 * TOKENS * 10)],
    )


def test_beside_a_row_parallel_layer_the_output_is_gathered() -> None:
    shard = shard_of(tp=2, sequence_parallel=True)
    forward, backward = linear_forward(DOWN, shard), linear_backward(DOWN, shard)
    assert products(forward)["down.lora.b"] == (TOKENS, 5, RANK)
    assert (sent(forward), sent(backward)) == (
        [(Collective.ALL_REDUCE, 2 * TOKENS * RANK), (Collective.ALL_GATHER, 2 * TOKENS * 10)],
        [(Collective.ALL_REDUCE, 2 * TOKENS * RANK)],
    )


def test_inputs_stay_for_the_adapter_alone() -> None:
    pieces = linear_forward(UP, shard_of())
    assert {p.name: p.saved for p in pieces if isinstance(p, Gemm)} == {
        "up": 0.0,
        "up.lora.a": 2 * TOKENS * 10,
        "up.lora.b": 2 * TOKENS * RANK,
    }


def test_what_no_weight_gradient_needs_is_not_gathered_again() -> None:
    layout = ParallelLayout(tp=2, sequence_parallel=True)
    shard = make_shard(layout, tiny_job(lora=LORA), fake_stack(), 8)
    passes = layer_passes(tiny_model().layers()[0], shard, Recompute.NONE)
    assert not [piece for piece in passes.backward.pieces if piece.name.endswith(".regather")]


def lora_parameters(model: ModelSpec) -> int:
    """r (k + n) for qkv, proj, up and down of each layer of a plain GPT of width h."""
    h = model.hidden_size
    shapes = [(h, 3 * h), (h, h), (h, 4 * h), (4 * h, h)]
    return model.num_hidden_layers * RANK * sum(k + n for k, n in shapes)


def test_trainable_parameters_are_those_of_the_adapters() -> None:
    cast = forecaster(ParallelLayout(), job=tiny_job(lora=LORA))
    assert cast.trainable_parameters == lora_parameters(tiny_model()) == 4 * 8 * 16 * 64


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_only_adapters_have_gradients_and_states_and_are_reduced(tp: int) -> None:
    layout = ParallelLayout(tp=tp, dp=2)
    cast = forecaster(layout, job=tiny_job(lora=LORA))
    program, (use,) = cast.program(layout), cast.memory(layout)
    adapters = lora_parameters(tiny_model()) / tp
    frozen = forecaster(layout).program(layout).stage_parameters(0)
    assert (use.weights, use.gradients, use.optimizer) == (
        2 * (frozen + adapters),
        2 * adapters,
        12 * adapters,
    )
    assert reduced(program, program.chunks[0].whole).rest == 2 * adapters


def test_zero_3_still_keeps_its_shard_of_frozen_weights() -> None:
    layout = ParallelLayout(dp=2, zero_stage=3)
    (use,) = forecaster(layout, job=tiny_job(lora=LORA)).memory(layout)
    assert use.weights == pytest.approx(2 * tiny_model().parameters / 2)


def test_mfu_counts_two_passes_of_frozen_weights_and_three_of_adapters() -> None:
    plain = forecaster(ParallelLayout())
    lora = forecaster(ParallelLayout(), job=tiny_job(lora=LORA))
    model, tokens = tiny_model(), 8 * 32
    h, layers = model.hidden_size, model.num_hidden_layers
    frozen = 2 * tokens * (12 * h * h * layers + model.vocab_size * h)
    added = 3 * 2 * tokens * lora_parameters(model)
    assert lora.model_flops == plain.model_flops - frozen + added


def test_a_frozen_part_loses_its_weight_gradients_and_keeps_its_norms() -> None:
    layout = ParallelLayout()
    program = forecaster(layout, job=tiny_job(freeze=(Part.ATTENTION,))).program(layout)
    h, layers = 64, 4
    assert program.chunks[0].whole.frozen == layers * (4 * h * h + 4 * h)


def test_a_frozen_embedding_has_no_backward_pass() -> None:
    shard = make_shard(ParallelLayout(), tiny_job(freeze=(Part.EMBEDDING,)), fake_stack(), 8)
    assert embedding_passes(64, shard, learned_positions=True).backward.pieces == ()


@pytest.mark.parametrize("layout", [{}, {"tp": 2}, {"zero_stage": 3}, {"tp": 2, "zero_stage": 1}])
def test_estimate_and_engine_agree_with_adapters(layout: dict[str, int]) -> None:
    plan = ParallelLayout.model_validate({"dp": 2, **layout})
    step = step_of(plan, forecaster(plan, job=tiny_job(lora=LORA)))
    assert max(step.play().end) == pytest.approx(step.timing().step_time, rel=1e-9)
    assert all(seconds > 0 for seconds in step.seconds(WorkKind.REDUCE))


@pytest.mark.parametrize("tp", [1, 2, 4])
@pytest.mark.parametrize("gated", [False, True])
def test_matrices_are_those_that_the_passes_multiply_with(tp: int, gated: bool) -> None:
    layer = tiny_model(gated_mlp=gated, num_key_value_heads=2).layers()[0]
    shard = make_shard(ParallelLayout(tp=tp), tiny_job(), fake_stack(), 8)
    forward = layer_passes(layer, shard, Recompute.NONE).forward
    used = [(piece.k, piece.n) for piece in forward.pieces if isinstance(piece, Gemm)]
    assert used == [(matrix.k, matrix.n) for matrix in layer_matrices(layer, Ranks(tp=tp))]


@pytest.mark.parametrize("name", ["mixtral-8x7b", "deepseek-v2-lite", "deepseek-v3"])
def test_matrices_of_presets_are_all_weights_but_vectors(name: str) -> None:
    for layer in load_model(name).spec.layer_groups():
        weights = sum(matrix.parameters for matrix in layer_matrices(layer, Ranks(tp=1)))
        assert 0 <= layer.parameters - weights < 4 * layer.hidden_size + 1000
