"""What runs between and behind the experts' products, against hand arithmetic."""

from __future__ import annotations

from simulator.parallel.blocks import layer_passes
from simulator.parallel.layout import Recompute, RecomputeModule
from simulator.parallel.work import Block
from simulator.workload.job import Dispatcher, Routing
from simulator.workload.load import load_model
from simulator.workload.operator import MemoryBound
from tests.fakes import fake_stack
from tests.simulator.parallel.mixtures import EXPERTS, named, passes_of, shard_of, tiny_mixture

LAYER = tiny_mixture(
    EXPERTS.model_copy(update={"clamped": True, "expert_bias": True, "router_bias": True})
).layers()[0]
UNFUSED = fake_stack(kernels={"fused_clamp": False, "fused_expert_bias": False})
ROWS, HIDDEN, WIDTH, EXPERTS_HELD = 128, 64, 128, 8
"""64 tokens go to 2 experts each; 16 rows an expert."""
ONE = 2 * ROWS * WIDTH
"""Bytes of (rows, width) in bf16."""
NUMBERS = ROWS * HIDDEN


def kernels(block: Block, beginning: str) -> dict[str, tuple[float, int]]:
    """Return bytes and count of the kernels whose names begin so."""
    return {
        name: (piece.bytes, piece.count)
        for name, piece in named(block).items()
        if isinstance(piece, MemoryBound) and name.startswith(beginning)
    }


def test_clamping_apart_reads_and_writes_gate_and_value_and_joins_them() -> None:
    passes = passes_of(LAYER, shard_of(stack=UNFUSED))
    forward = kernels(passes.forward, "moe.experts.activation.clamp")
    backward = kernels(passes.backward, "moe.experts.activation.clamp")
    assert (forward, backward) == (
        {"moe.experts.activation.clamp": (8 * ONE, 1)},
        {"moe.experts.activation.clamp.backward": (10 * ONE, 1)},
    )


def test_clamping_apart_keeps_what_it_clamps() -> None:
    fused = passes_of(LAYER, shard_of()).kept
    assert passes_of(LAYER, shard_of(stack=UNFUSED)).kept - fused == 2 * ONE


def test_recomputing_the_activation_clamps_again_and_keeps_what_it_clamps_no_longer() -> None:
    shard = shard_of(
        stack=UNFUSED,
        recompute=Recompute.SELECTIVE,
        recompute_modules=(RecomputeModule.MOE_ACTIVATION,),
    )
    passes = layer_passes(LAYER, shard, Recompute.SELECTIVE)
    again = [piece.name for piece in passes.recompute.pieces]
    freed = passes_of(LAYER, shard).kept - passes.kept
    # The input of the down projection (w a row), and what was clamped (2 w).
    assert (again, freed) == (
        ["moe.experts.activation.clamp", "moe.experts.activation"],
        3 * ONE,
    )


def test_the_outputs_bias_is_multiplied_added_and_joined_an_expert_at_a_time() -> None:
    passes = passes_of(LAYER, shard_of(stack=UNFUSED))
    # Forward 2 to write, 6 to add, 4 to join; backward 2 x (4 to multiply, 2 to sum), 4 to join.
    assert kernels(passes.forward, "moe.experts.bias") == {
        "moe.experts.bias": (8 * NUMBERS / EXPERTS_HELD, EXPERTS_HELD),
        "moe.experts.bias.concatenate": (4 * NUMBERS, 1),
    }
    assert kernels(passes.backward, "moe.experts.bias") == {
        "moe.experts.bias.backward": (12 * NUMBERS / EXPERTS_HELD, EXPERTS_HELD),
        "moe.experts.bias.backward.concatenate": (4 * NUMBERS, 1),
    }


def test_libraries_that_send_tokens_make_the_bias_float32() -> None:
    moe = Routing(dispatcher=Dispatcher.FLEX)
    passes = passes_of(LAYER, shard_of(stack=UNFUSED, moe=moe, dp=2, ep=2))
    # 4 experts. Forward 4 to write, 10 to add, 8 to join, 6 to cast; backward 6 + 24 + 6, 4.
    assert kernels(passes.forward, "moe.experts.bias") == {
        "moe.experts.bias": (14 * NUMBERS / 4, 4),
        "moe.experts.bias.concatenate": (14 * NUMBERS, 1),
    }
    assert kernels(passes.backward, "moe.experts.bias") == {
        "moe.experts.bias.backward": (30 * NUMBERS / 4, 4),
        "moe.experts.bias.backward.concatenate": (10 * NUMBERS, 1),
    }


def test_a_bias_added_apart_has_no_gradient_in_the_product() -> None:
    names = [
        set(named(passes_of(LAYER, shard_of(stack=stack)).backward))
        for stack in (fake_stack(), UNFUSED)
    ]
    assert names[0] - names[1] == {"moe.experts.down.bias.grad"}


def test_experts_without_clamp_or_bias_run_nothing_more() -> None:
    plain = tiny_mixture().layers()[0]
    assert passes_of(plain, shard_of(stack=UNFUSED)) == passes_of(plain, shard_of())


def test_gpt_oss_clamps() -> None:
    moe = load_model("gpt-oss-20b").spec.moe
    assert moe is not None
    assert moe.clamped
