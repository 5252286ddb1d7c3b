"""FLOP and activation bytes of whole layers against the closed forms of the papers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.parallel.blocks import embedding_passes, head_passes, layer_passes
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ParallelLayout, Recompute
from simulator.parallel.shard import Shard, make_shard
from simulator.parallel.work import CommWork, PassPair
from simulator.workload.layer import LayerSpec
from simulator.workload.operator import Gemm
from simulator.workload.stack import Stack
from simulator.workload.stack_choices import AttentionKernel
from tests.fakes import fake_stack, tiny_job, tiny_model

B, S, H, A = 2, 32, 64, 4
SBH = S * B * H
SCORES = 5 * A * S / H
"""Korthikanti's 5 a s / h, in units of s b h."""
PAPER_STACK = fake_stack(kernels={"attention": AttentionKernel.UNFUSED, "dropout": True})
FLASH_STACK = fake_stack()
GPT: LayerSpec = tiny_model().layers()[0]


def shard_of(stack: Stack = PAPER_STACK, **changes: object) -> Shard:
    layout = ParallelLayout.model_validate({"micro_batch_size": B, **changes})
    return make_shard(layout, tiny_job(seq_length=S), stack, 8)


def gpt(stack: Stack = PAPER_STACK, **changes: object) -> PassPair:
    recompute = Recompute(str(changes.get("recompute", Recompute.NONE)))
    return layer_passes(GPT, shard_of(stack, **changes), recompute)


def test_a_layer_keeps_34_sbh_and_its_scores() -> None:
    # Korthikanti et al. 2022, equation 1.
    assert gpt().kept == SBH * (34 + SCORES)


@pytest.mark.parametrize("tp", [2, 4])
def test_tensor_parallel_keeps_10_sbh_whole(tp: int) -> None:
    # Korthikanti et al. 2022, equation 2.
    assert gpt(tp=tp).kept == SBH * (10 + 24 / tp + SCORES / tp)


@pytest.mark.parametrize("tp", [2, 4])
def test_sequence_parallel_divides_all_of_it(tp: int) -> None:
    # Korthikanti et al. 2022, equation 4.
    assert gpt(tp=tp, sequence_parallel=True).kept == SBH * (34 / tp + SCORES / tp)


@pytest.mark.parametrize(
    ("kernels", "units"),
    [
        # Norm in and out 2 + 2, queries, keys, values 6, core 2; norm 2 + 2, gate and value 16,
        # their product 8.
        ({}, 40),
        # Eager, silu(gate) stays too.
        ({"fused_activation": False}, 48),
        # The projection [3, b, s, heads, d], of which queries are a part: keys, values once more.
        ({"fused_activation": False, "keeps_projection": True}, 52),
    ],
)
def test_an_eager_gated_layer_keeps_what_autograd_saves(
    kernels: dict[str, object], units: int
) -> None:
    layer = tiny_model(gated_mlp=True, activation="silu").layers()[0]
    kept = layer_passes(layer, shard_of(fake_stack(kernels=kernels)), Recompute.NONE).kept
    log_sum_exp = 4 * A * B * S
    assert kept == units * SBH + log_sum_exp


def test_grouped_queries_are_copied_out_of_their_projection() -> None:
    layer = tiny_model(num_key_value_heads=A // 2).layers()[0]
    views, copies = (
        layer_passes(
            layer, shard_of(fake_stack(kernels={"keeps_projection": each})), Recompute.NONE
        ).kept
        for each in (True, False)
    )
    assert views == copies


def test_full_recompute_keeps_the_input_and_needs_the_rest_for_one_layer_at_a_time() -> None:
    passes = gpt(recompute=Recompute.FULL)
    assert (passes.kept, passes.transient) == (2 * SBH, SBH * (32 + SCORES))


def test_full_recompute_with_sequence_parallel_keeps_a_slice_of_the_input() -> None:
    passes = gpt(tp=4, sequence_parallel=True, recompute=Recompute.FULL)
    assert passes.kept == 2 * SBH / 4


def test_selective_recompute_keeps_34_sbh_and_makes_the_scores_again() -> None:
    passes = gpt(recompute=Recompute.SELECTIVE)
    assert (passes.kept, passes.transient) == (34 * SBH, SCORES * SBH)


def test_selective_recompute_with_flash_attention_frees_nothing() -> None:
    again = gpt(FLASH_STACK, recompute=Recompute.SELECTIVE)
    assert again.kept == gpt(FLASH_STACK).kept


@pytest.mark.parametrize("recompute", list(Recompute))
def test_recomputed_flops_are_none_the_core_or_the_whole_layer(recompute: Recompute) -> None:
    expected = {
        Recompute.NONE: 0,
        Recompute.SELECTIVE: 4 * B * S * S * H,
        Recompute.FULL: 24 * B * S * H * H + 4 * B * S * S * H,
    }
    assert gpt(recompute=recompute).recompute.flops == expected[recompute]


def test_a_layer_does_24_bshh_forward_and_twice_that_backward() -> None:
    # Narayanan et al. 2021 (SC'21), appendix: 24 B s h^2 + 4 B s^2 h.
    once = 24 * B * S * H * H + 4 * B * S * S * H
    passes = gpt()
    assert (passes.forward.flops, passes.backward.flops) == (once, 2 * once)


def test_flash_attention_halves_the_scores_forward_and_makes_five_products_backward() -> None:
    passes = gpt(FLASH_STACK)
    # The causal mask leaves s (s + 1) / 2 of the s^2 scores.
    linear, scores = 24 * B * S * H * H, 4 * B * S * (S + 1) / 2 * H
    assert (passes.forward.flops, passes.backward.flops) == (
        linear + scores,
        2 * linear + 2.5 * scores,
    )


def test_mfu_counts_attention_without_its_mask() -> None:
    assert gpt(FLASH_STACK).forward.model_flops == gpt().forward.model_flops


@given(tp=st.sampled_from((1, 2, 4)), cp=st.sampled_from((1, 2, 4)), flash=st.booleans())
def test_ranks_together_do_the_flops_of_the_layer(tp: int, cp: int, flash: bool) -> None:
    stack = FLASH_STACK if flash or cp > 1 else PAPER_STACK
    local, whole = gpt(stack, tp=tp, cp=cp), gpt(stack)
    assert local.forward.flops * tp * cp == pytest.approx(whole.forward.flops)


def communication(passes: PassPair) -> dict[str, list[tuple[Collective, float]]]:
    return {
        block.name: [
            (piece.collective, piece.payload / (2 * SBH))
            for piece in block.pieces
            if isinstance(piece, CommWork)
        ]
        for block in (passes.forward, passes.backward)
    }


def test_tensor_parallel_all_reduces_twice_forward_and_twice_backward() -> None:
    # Shoeybi et al. 2019, figure 4.
    twice = [(Collective.ALL_REDUCE, 1.0)] * 2
    assert communication(gpt(tp=2)) == {"layer.forward": twice, "layer.backward": twice}


def test_sequence_parallel_replaces_each_all_reduce_by_a_scatter_and_a_gather() -> None:
    # Korthikanti et al. 2022, figure 5; the backward pass gathers each input once more.
    gather, scatter = (Collective.ALL_GATHER, 1.0), (Collective.REDUCE_SCATTER, 1.0)
    assert communication(gpt(tp=2, sequence_parallel=True)) == {
        "layer.forward": [gather, scatter] * 2,
        "layer.backward": [gather, gather, scatter] * 2,
    }


def test_one_rank_communicates_nothing() -> None:
    assert communication(gpt()) == {"layer.forward": [], "layer.backward": []}


def test_context_parallel_passes_keys_and_values_round_the_ring() -> None:
    passes = gpt(FLASH_STACK, cp=4)
    (ring,) = [piece for piece in passes.forward.pieces if isinstance(piece, CommWork)]
    keys_and_values = 2 * 2 * SBH / 4
    assert (ring.payload, ring.count) == (keys_and_values, 3)


def test_context_parallel_passes_gradients_back_with_them() -> None:
    passes = gpt(FLASH_STACK, cp=4)
    (ring,) = [piece for piece in passes.backward.pieces if isinstance(piece, CommWork)]
    assert (ring.payload, ring.count) == (2 * 2 * 2 * SBH / 4, 3)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_grouped_heads_shrink_the_qkv_product(heads: int) -> None:
    layer = tiny_model(num_key_value_heads=heads).layers()[0]
    products = {p.name: p for p in layer_passes(layer, shard_of(), Recompute.NONE).forward.pieces}
    qkv = products["attention.qkv"]
    assert isinstance(qkv, Gemm)
    assert qkv.n == H + 2 * heads * H // A


def test_head_does_2_bshv_forward() -> None:
    assert head_passes(H, 1024, shard_of()).forward.flops == 2 * B * S * H * 1024


def test_head_reduces_three_numbers_a_token_of_a_split_vocabulary() -> None:
    (reduction,) = [
        piece
        for piece in head_passes(H, 512, shard_of(tp=2)).forward.pieces
        if isinstance(piece, CommWork)
    ]
    assert (reduction.payload, reduction.count) == (4 * B * S, 3)


def test_logits_live_only_while_the_loss_is_computed() -> None:
    assert head_passes(H, 1024, shard_of()).transient == 4 * B * S * 1024


def test_embedding_reads_tokens_and_positions_and_writes_their_sum() -> None:
    with_and_without = [
        embedding_passes(H, shard_of(FLASH_STACK), learned_positions=learned).forward.pieces[0]
        for learned in (False, True)
    ]
    assert [getattr(piece, "bytes", None) for piece in with_and_without] == [4 * SBH, 8 * SBH]
