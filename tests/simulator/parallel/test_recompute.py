"""What each module frees and computes again, against Korthikanti's accounting and by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.parallel.blocks import layer_passes
from simulator.parallel.layout import (
    ParallelLayout,
    Recompute,
    RecomputeMethod,
    RecomputeModule,
    ScheduleName,
)
from simulator.parallel.shard import make_shard
from simulator.parallel.work import CommWork, PassPair
from simulator.results import MemoryUse
from simulator.workload.layer import (
    LayerSpec,
    MlaSpec,
    MlpSpec,
    MoeSpec,
    Norm,
)
from simulator.workload.stack import Stack
from simulator.workload.stack_choices import AttentionKernel, SelectiveRecompute
from tests.fakes import fake_stack, tiny_job, tiny_model
from tests.simulator.steps import forecaster

CORE, NORMS, UP = (
    RecomputeModule.CORE_ATTENTION,
    RecomputeModule.LAYERNORM,
    RecomputeModule.MLA_UP_PROJECTION,
)
MLP, MOE = RecomputeModule.MLP, RecomputeModule.MOE
MOE_ACT, SHARED = RecomputeModule.MOE_ACTIVATION, RecomputeModule.SHARED_EXPERTS
B, S, H, A = 2, 32, 64, 4
TOKENS = B * S
SBH = TOKENS * H
SCORES = 5 * A * S / H
PAPER = fake_stack(kernels={"attention": AttentionKernel.UNFUSED, "dropout": True})
FLASH = fake_stack()
BY_OPERATOR = fake_stack(selective=SelectiveRecompute.OPERATORS)
GPT: LayerSpec = tiny_model().layers()[0]


def passes(
    *modules: RecomputeModule,
    layer: LayerSpec = GPT,
    stack: Stack = PAPER,
    recompute: Recompute = Recompute.SELECTIVE,
    **changes: object,
) -> PassPair:
    layout = ParallelLayout.model_validate(
        {"micro_batch_size": B, "recompute_modules": modules, **changes}
    )
    shard = make_shard(layout, tiny_job(seq_length=S), stack, 8)
    return layer_passes(layer, shard, recompute)


def plain(layer: LayerSpec = GPT, stack: Stack = PAPER, **changes: object) -> PassPair:
    return passes(layer=layer, stack=stack, recompute=Recompute.NONE, **changes)


def again(pair: PassPair) -> list[str]:
    return [piece.name for piece in pair.recompute.pieces]


@pytest.mark.parametrize(
    ("modules", "kept", "transient"),
    [
        # Of the 34 + 5 a s / h of a layer the core frees the scores.
        ((CORE,), 34, SCORES),
        # The two norm outputs, 2 each, one branch after the other.
        ((NORMS,), 30 + SCORES, 2),
        # GELU input and down input, 8 each.
        ((MLP,), 18 + SCORES, 16),
        # With the norm the MLP keeps nothing of its own.
        ((NORMS, MLP), 14 + SCORES, 18),
        ((CORE, NORMS, MLP), 14, max(SCORES + 2, 18)),
    ],
    ids=str,
)
def test_modules_free_their_share_of_34_sbh(
    modules: tuple[RecomputeModule, ...], kept: float, transient: float
) -> None:
    pair = passes(*modules)
    assert (pair.kept, pair.transient) == (kept * SBH, transient * SBH)


def test_the_order_in_which_modules_are_named_does_not_matter() -> None:
    assert passes(MLP, NORMS) == passes(NORMS, MLP)


def test_norms_run_again_and_no_product() -> None:
    pair = passes(NORMS)
    assert (again(pair), pair.recompute.flops) == (["attention.norm", "mlp.norm"], 0.0)


def test_a_dense_mlp_runs_again_behind_its_norm_and_before_its_residual() -> None:
    pair = passes(MLP)
    # Two products of 2 x tokens x h x 4 h.
    expected = (["mlp.up", "mlp.activation", "mlp.down"], 16 * TOKENS * H * H)
    assert (again(pair), pair.recompute.flops) == expected


def test_a_compiler_drops_the_last_product_of_a_recomputed_mlp_and_frees_as_much() -> None:
    pruned = passes(MLP, stack=fake_stack(kernels={"prunes_recompute": True}), tp=2)
    whole = passes(MLP, stack=FLASH, tp=2)
    expected = (["mlp.up", "mlp.activation"], whole.recompute.flops / 2)
    assert (again(pruned), pruned.recompute.flops) == expected
    assert (pruned.kept, pruned.transient) == (whole.kept, whole.transient)


@pytest.mark.parametrize("tp", [2, 4])
def test_an_mlp_repeats_its_collectives(tp: int) -> None:
    pair = passes(MLP, tp=tp, sequence_parallel=True)
    repeated = [piece.name for piece in pair.recompute.pieces if isinstance(piece, CommWork)]
    assert repeated == ["mlp.up.gather", "mlp.down.reduce"]


def test_sequence_parallel_divides_what_modules_free() -> None:
    pair = passes(NORMS, MLP, tp=4, sequence_parallel=True)
    assert pair.kept == (14 + SCORES) * SBH / 4


def test_a_norm_output_that_is_kept_gathered_is_gathered_again() -> None:
    stack = fake_stack(kernels={"keeps_gathered": True})
    pair = passes(NORMS, stack=stack, tp=4, sequence_parallel=True)
    gathers = ["attention.norm", "attention.qkv.gather", "mlp.norm", "mlp.up.gather"]
    # The two inputs of all tokens, 2 s b h each, are not kept.
    freed = plain(stack=stack, tp=4, sequence_parallel=True).kept - pair.kept
    assert (again(pair), freed) == (gathers, 4 * SBH)


LATENT = LayerSpec(
    hidden_size=H,
    attention=MlaSpec(
        hidden_size=H,
        num_attention_heads=A,
        q_lora_rank=24,
        kv_lora_rank=16,
        qk_nope_head_dim=8,
        qk_rope_head_dim=4,
        v_head_dim=8,
    ),
    mlp=MlpSpec(hidden_size=H, intermediate_size=4 * H, gated=False, activation="gelu"),
    norm=Norm.RMSNORM,
    norms=2,
)
SPARSE = LayerSpec(
    hidden_size=H,
    attention=GPT.attention,
    mlp=MoeSpec(
        hidden_size=H,
        experts=4,
        experts_per_token=2,
        intermediate_size=32,
        gated=True,
        activation="silu",
        shared_intermediate_size=16,
    ),
    norm=Norm.RMSNORM,
    norms=2,
)


def test_up_projections_free_queries_keys_and_values_and_keep_latents() -> None:
    pair = passes(UP, layer=LATENT, stack=FLASH)
    # 4 heads of 12 + 12 + 8 channels, 2 bytes each.
    freed = plain(LATENT, FLASH).kept - pair.kept
    assert (again(pair), freed) == (
        ["attention.q_up", "attention.kv_up", "attention.rope"],
        2 * TOKENS * 4 * (12 + 12 + 8),
    )


def test_latent_norm_outputs_are_not_those_that_layernorm_frees() -> None:
    # The hidden state behind the two norms of the residual stream: 2 bytes each.
    freed = plain(LATENT, FLASH).kept - passes(NORMS, layer=LATENT, stack=FLASH).kept
    assert freed == 2 * 2 * SBH


def test_queries_projected_from_the_hidden_state_are_a_reader_of_the_norm() -> None:
    direct = MlaSpec(
        hidden_size=H,
        num_attention_heads=A,
        q_lora_rank=None,
        kv_lora_rank=16,
        qk_nope_head_dim=8,
        qk_rope_head_dim=4,
        v_head_dim=8,
    )
    layer = LayerSpec(hidden_size=H, attention=direct, mlp=LATENT.mlp, norm=Norm.RMSNORM, norms=2)
    freed = plain(layer, FLASH).kept - passes(NORMS, layer=layer, stack=FLASH).kept
    assert freed == 2 * 2 * SBH


def test_the_experts_activation_frees_the_input_of_their_down_projection() -> None:
    pair = passes(MOE_ACT, layer=SPARSE, stack=FLASH)
    # 2 experts a token, 32 channels of 2 bytes.
    freed = plain(SPARSE, FLASH).kept - pair.kept
    assert (again(pair), freed) == (["moe.experts.activation"], 2 * TOKENS * 32 * 2)


def test_shared_experts_free_what_they_keep_and_share_the_routers_input() -> None:
    pair = passes(SHARED, layer=SPARSE, stack=FLASH)
    # Gate and up, 16 channels each, and the input of down, 16.
    freed = plain(SPARSE, FLASH).kept - pair.kept
    names = ["moe.shared.up", "moe.shared.activation", "moe.shared.down"]
    assert (again(pair), freed) == (names, TOKENS * 48 * 2)


def test_a_whole_mixture_keeps_only_its_input() -> None:
    pair = passes(MOE, layer=SPARSE, stack=FLASH)
    attention_only = LayerSpec(
        hidden_size=H, attention=SPARSE.attention, mlp=None, norm=Norm.RMSNORM, norms=1
    )
    # Beside attention: the norm's input and its output, 2 bytes each.
    assert pair.kept == plain(attention_only, FLASH).kept + 4 * SBH


def test_a_mixture_sends_its_tokens_again() -> None:
    pair = passes(MOE, layer=SPARSE, stack=FLASH, dp=4, ep=4)
    expected = [p for p in pair.forward.pieces if isinstance(p, CommWork) and "moe." in p.name]
    repeated = [p for p in pair.recompute.pieces if isinstance(p, CommWork)]
    assert repeated == expected != []


def test_redundant_modules_free_nothing_twice() -> None:
    whole = passes(MOE, layer=SPARSE, stack=FLASH)
    assert passes(MOE, MOE_ACT, SHARED, layer=SPARSE, stack=FLASH) == whole


LAYERS = {"gpt": GPT, "latent": LATENT, "sparse": SPARSE}
module_sets = st.sets(st.sampled_from(list(RecomputeModule)), min_size=1)


@given(
    name=st.sampled_from(sorted(LAYERS)),
    modules=module_sets,
    more=module_sets,
    cut=st.fixed_dictionaries(
        {"tp": st.sampled_from((1, 2, 4)), "sequence_parallel": st.booleans()}
    ),
    stack=st.sampled_from((FLASH, PAPER)),
)
def test_more_modules_never_keep_more_nor_compute_less(
    name: str,
    modules: set[RecomputeModule],
    more: set[RecomputeModule],
    cut: dict[str, Any],
    stack: Stack,
) -> None:
    layer = LAYERS[name]
    chain = [
        plain(layer, stack, **cut),
        passes(*modules, layer=layer, stack=stack, **cut),
        passes(*(modules | more), layer=layer, stack=stack, **cut),
        passes(layer=layer, stack=stack, recompute=Recompute.FULL, **cut),
    ]
    kept = [pair.kept for pair in chain]
    peak = [pair.kept + pair.transient for pair in chain]
    work = [len(pair.recompute.pieces) for pair in chain]
    whole = pytest.approx(chain[0].kept + chain[0].transient)
    assert (kept, work) == (sorted(kept, reverse=True), sorted(work))
    assert max(peak) == whole
    assert min(pair.transient for pair in chain) >= 0


def llama(*, gated: bool = True) -> LayerSpec:
    return tiny_model(gated_mlp=gated, num_key_value_heads=2, mlp_bias=False).layers()[0]


def test_recompute_by_operator_keeps_every_second_product_and_attention() -> None:
    pair = passes(layer=llama(), stack=BY_OPERATOR)
    # Input, query, value (2 of 4 heads), attention and its fp32 sums, gate; no one reads what down
    # wrote.
    channels = H + H + H / 2 + H + 4 * H
    assert pair.kept == 2 * TOKENS * channels + 4 * TOKENS * A


def test_recompute_by_operator_runs_key_output_and_up_again() -> None:
    pair = passes(layer=llama(), stack=BY_OPERATOR)
    flops = 2 * TOKENS * H * (H / 2 + H + 4 * H)
    assert (again(pair), pair.recompute.flops) == (
        [
            "attention.norm",
            "attention.qkv",
            "attention.proj",
            "attention.proj.residual",
            "mlp.norm",
            "mlp.up",
            "mlp.activation",
        ],
        flops,
    )


def test_a_plain_mlp_keeps_its_one_product_up() -> None:
    # Key and output run again; down would, but no one reads what it wrote.
    pair = passes(layer=llama(gated=False), stack=BY_OPERATOR)
    assert pair.recompute.flops == 2 * TOKENS * H * (H / 2 + H)


def test_recompute_by_operator_keeps_scattered_results_and_does_not_scatter_again() -> None:
    pair = passes(layer=llama(), stack=BY_OPERATOR, tp=2, sequence_parallel=True)
    # Half of input, query, value, attention and gate, and of the scattered output of attention.
    channels = H + (H + H / 2 + H + 4 * H) + H
    kept = 2 * TOKENS * channels / 2 + 4 * TOKENS * A / 2
    names = [piece.name for piece in pair.recompute.pieces if isinstance(piece, CommWork)]
    assert (pair.kept, names) == (kept, ["attention.qkv.gather", "mlp.up.gather"])
    assert "attention.proj" not in again(pair)


@given(tp=st.sampled_from((1, 2)), sequence_parallel=st.booleans(), gated=st.booleans())
def test_recompute_by_operator_lies_between_none_and_full(
    tp: int, sequence_parallel: bool, gated: bool
) -> None:
    layer, cut = llama(gated=gated), {"tp": tp, "sequence_parallel": sequence_parallel}
    chain = [
        passes(layer=layer, stack=BY_OPERATOR, recompute=recompute, **cut)
        for recompute in (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)
    ]
    kept, flops = [p.kept for p in chain], [p.recompute.flops for p in chain]
    assert (kept, flops) == (sorted(kept, reverse=True), sorted(flops))


LAYER = S * H * (34 + SCORES)
INPUT = 2 * S * H


def middle_stage(**changes: object) -> MemoryUse:
    """Return the second of three stages of two layers each, with two micro-batches in flight."""
    layout = ParallelLayout.model_validate(
        {"pp": 3, "schedule": ScheduleName.ONE_F_ONE_B, "recompute": Recompute.FULL, **changes}
    )
    cast = forecaster(layout, stack=PAPER, model=tiny_model(num_hidden_layers=6))
    return cast.memory(layout)[1]


def test_block_recompute_frees_the_first_layers_of_each_stage() -> None:
    use = middle_stage(recompute_num_layers=1)
    assert (use.activations, use.transient) == (2 * (INPUT + LAYER), LAYER - INPUT)


def test_uniform_recompute_keeps_one_input_a_unit_and_brings_a_unit_back() -> None:
    use = middle_stage(recompute_num_layers=2, recompute_method=RecomputeMethod.UNIFORM)
    assert (use.activations, use.transient) == (2 * INPUT, 2 * LAYER - INPUT)


def test_units_of_one_layer_are_plain_full_recompute() -> None:
    unit = middle_stage(recompute_num_layers=1, recompute_method=RecomputeMethod.UNIFORM)
    assert unit == middle_stage()


def test_block_recompute_of_all_layers_is_plain_full_recompute() -> None:
    assert middle_stage(recompute_num_layers=2) == middle_stage()


def test_a_last_unit_may_be_shorter() -> None:
    layout = ParallelLayout(
        recompute=Recompute.FULL, recompute_num_layers=3, recompute_method=RecomputeMethod.UNIFORM
    )
    (chunk,) = forecaster(layout).program(layout).chunks
    works = [work for work, count in chunk.whole.layers for _ in range(count)]
    assert [(work.unit, work.holds_input) for work in works] == [
        (3, True),
        (3, False),
        (3, False),
        (1, True),
    ]


@given(number=st.integers(1, 3))
def test_more_recomputed_blocks_never_take_less_time_nor_more_memory(number: int) -> None:
    layouts = [
        ParallelLayout(recompute=Recompute.FULL, recompute_num_layers=n)
        for n in (number, number + 1)
    ]
    casts = [forecaster(layout, stack=PAPER) for layout in layouts]
    times = [cast.step_time(layout) for cast, layout in zip(casts, layouts, strict=True)]
    peaks = [cast.peak_memory(layout) for cast, layout in zip(casts, layouts, strict=True)]
    assert (times, peaks) == (sorted(times), sorted(peaks, reverse=True))
