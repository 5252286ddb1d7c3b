"""Operators, bytes and collectives of mixtures of experts against hand arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.hardware.accelerator import Dtype
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.work import Block, CommWork
from simulator.workload.job import Dispatcher, Routing
from simulator.workload.load import load_model
from simulator.workload.operator import Gemm, MemoryBound
from tests.fakes import fake_stack
from tests.simulator.parallel.mixtures import (
    SHARED,
    comms,
    experts_of,
    gemm,
    named,
    passes_of,
    shard_of,
    tiny_mixture,
)

TINY = tiny_mixture().layers()[0]
WITH_SHARED = tiny_mixture(SHARED).layers()[0]
ROW = 2 * 64
"""Bytes of a token's hidden state in bf16."""
OWN, COPIES = 64, 128


def payloads(block: Block, beginning: str) -> dict[str, tuple[Collective, float]]:
    """Return collective and rows of the collectives whose names begin so."""
    return {
        name: (piece.collective, piece.payload / ROW)
        for name, piece in comms(block, beginning).items()
    }


def test_experts_of_mixtral_at_tp2_ep4_run_two_products_each_of_4096_rows() -> None:
    # 4096 tokens, 2048 a tp rank; 8 ranks x 2048 x 2 / 8 experts = 4096 rows; 14336 / etp = 7168.
    layer = load_model("mixtral-8x7b").spec.layers()[0]
    shard = shard_of(tp=2, dp=4, ep=4, etp=2, sequence_parallel=True, micro_batch_size=1, seq=4096)
    forward = passes_of(layer, shard).forward
    shapes = [gemm(forward, f"moe.experts.{name}") for name in ("up", "down")]
    assert shapes == [(4096, 2 * 7168, 4096, 2), (4096, 4096, 7168, 2)]


def test_mixtral_sends_32_mib_a_rank_and_gathers_64() -> None:
    layer = load_model("mixtral-8x7b").spec.layers()[0]
    shard = shard_of(tp=2, dp=4, ep=4, etp=2, sequence_parallel=True, micro_batch_size=1, seq=4096)
    forward = passes_of(layer, shard).forward
    sizes = {name: piece.payload / 2**20 for name, piece in comms(forward, "moe.").items()}
    del sizes["moe.dispatch.counts"], sizes["moe.router.aux_loss.reduce"]
    # 2048 x 2 rows of 8 KiB; the two etp ranks see each other's.
    assert sizes == {
        "moe.dispatch.all_to_all": 32.0,
        "moe.dispatch.gather": 64.0,
        "moe.combine.scatter": 64.0,
        "moe.combine.all_to_all": 32.0,
    }


def test_rows_cross_four_times_a_layer() -> None:
    passes = passes_of(TINY, shard_of(ep=4, dp=4))
    exchange = (Collective.ALL_TO_ALL, float(COPIES))
    counts = (Collective.ALL_GATHER, 8 * 8 * 4 / ROW)
    assert payloads(passes.forward, "moe.") == {
        "moe.dispatch.counts": counts,
        "moe.dispatch.all_to_all": exchange,
        "moe.combine.all_to_all": exchange,
    }
    assert payloads(passes.backward, "moe.") == {
        "moe.combine.all_to_all.backward": exchange,
        "moe.dispatch.all_to_all.backward": exchange,
    }


def test_one_rank_of_experts_sends_nothing() -> None:
    passes = passes_of(TINY, shard_of(dp=8))
    assert comms(passes.forward) == comms(passes.backward) == {}


def test_a_narrow_dispatch_format_holds_on_the_way_to_the_experts_only() -> None:
    # DeepSeek-V3, section 3.3.3: values in the dispatch, gradients in the combine's backward pass.
    moe = Routing(dispatch_dtype=Dtype.FP8)
    passes = passes_of(TINY, shard_of(ep=4, dp=4, moe=moe))
    both = {**comms(passes.forward, "moe."), **comms(passes.backward, "moe.")}
    rows = {name: piece.payload / ROW for name, piece in both.items() if "all_to_all" in name}
    assert rows == {
        "moe.dispatch.all_to_all": COPIES / 2,
        "moe.combine.all_to_all": COPIES,
        "moe.combine.all_to_all.backward": COPIES / 2,
        "moe.dispatch.all_to_all.backward": COPIES,
    }


def test_an_imbalance_makes_products_bytes_and_memory_of_experts_larger() -> None:
    even, uneven = (
        passes_of(TINY, shard_of(ep=4, dp=4, moe=Routing(load_imbalance=factor)))
        for factor in (1.0, 1.5)
    )
    up = [named(passes.forward)["moe.experts.up"] for passes in (even, uneven)]
    sent = [comms(passes.forward)["moe.dispatch.all_to_all"].payload for passes in (even, uneven)]
    ratios = (up[1].flops / up[0].flops, up[1].saved / up[0].saved, sent[1] / sent[0])  # type: ignore[union-attr]
    assert ratios == (1.5, 1.5, 1.5)


def test_mfu_counts_neither_imbalance_nor_padding_nor_the_router() -> None:
    routings = (Routing(), Routing(load_imbalance=1.5), Routing(capacity_factor=1.4))
    counted = [
        passes_of(TINY, shard_of(ep=4, dp=4, moe=moe)).forward.model_flops for moe in routings
    ]
    attention = 2 * OWN * (4 * 64 * 64) + 4 * 2 * 32 * 32 * 64
    experts = 2 * COPIES * 3 * 64 * 128
    assert counted == pytest.approx([attention + experts] * 3)


def test_a_layer_keeps_each_input_once() -> None:
    kept = {
        piece.name: piece.saved
        for piece in passes_of(TINY, shard_of(ep=4, dp=4)).forward.pieces
        if not isinstance(piece, CommWork) and piece.name.startswith("moe.") and piece.saved
    }
    assert kept == {
        "moe.norm": ROW * OWN,
        "moe.router": ROW * OWN,
        "moe.router.choice": (4 + 1) * OWN * 8,
        "moe.router.aux_loss": 4 * OWN * 8,
        "moe.dispatch.permute": 4 * COPIES,
        "moe.experts.up": ROW * COPIES,
        "moe.experts.activation": 2 * 2 * 128 * COPIES,
        "moe.experts.down": 2 * 128 * COPIES,
    }


def test_without_its_loss_the_router_does_less() -> None:
    forward = passes_of(TINY, shard_of(moe=Routing(aux_loss=False))).forward
    assert not [name for name in named(forward) if "aux_loss" in name]


def test_experts_one_after_another_launch_each_and_do_the_same() -> None:
    grouped, apart = (
        passes_of(TINY, shard_of(stack=fake_stack(kernels={"grouped_gemm": on}), ep=2, dp=2))
        for on in (True, False)
    )
    products = [
        [p for p in passes.forward.pieces if isinstance(p, Gemm) and "experts" in p.name]
        for passes in (grouped, apart)
    ]
    assert [(p.batch, p.count, p.grouped) for p in products[0]] == [(4, 1, True)] * 2
    assert [(p.batch, p.count, p.grouped) for p in products[1]] == [(1, 4, False)] * 2
    assert grouped.forward.flops == apart.forward.flops
    assert (grouped.kept, grouped.backward.flops) == (apart.kept, apart.backward.flops)


def test_backward_does_twice_the_products_of_forward() -> None:
    passes = passes_of(WITH_SHARED, shard_of(ep=4, dp=4))
    flops = [
        sum(p.flops for p in block.pieces if isinstance(p, Gemm) and p.name.startswith("moe."))
        for block in (passes.forward, passes.backward)
    ]
    assert flops[1] == 2 * flops[0]


@given(
    ep=st.sampled_from((1, 2, 4, 8)),
    tp=st.sampled_from((1, 2, 4)),
    cut=st.booleans(),
    dispatcher=st.sampled_from(Dispatcher),
)
def test_ranks_together_do_the_flops_of_the_layer(
    ep: int, tp: int, cut: bool, dispatcher: Dispatcher
) -> None:
    shard = shard_of(
        tp=tp,
        dp=8,
        ep=ep,
        etp=tp if cut else 1,
        sequence_parallel=tp > 1,
        moe=Routing(dispatcher=dispatcher),
    )
    local, whole = passes_of(WITH_SHARED, shard), passes_of(WITH_SHARED, shard_of())
    assert local.forward.flops * tp == pytest.approx(whole.forward.flops)


def test_flex_sends_a_copy_a_rank_of_which_one_a_domain_crosses() -> None:
    # 8 experts on 16 ranks of 8 a domain: 2 of 8 experts, etp 2: 4 ranks, in 11/7 domains of 2.
    shard = shard_of(
        tp=2,
        dp=8,
        ep=8,
        etp=2,
        sequence_parallel=True,
        moe=Routing(dispatcher=Dispatcher.FLEX),
    )
    piece = comms(passes_of(TINY, shard).forward)["moe.dispatch.all_to_all"]
    assert (piece.group, piece.payload) == (GroupShape(size=16, per_domain=8), ROW * 32 * 4)
    assert piece.network_share == pytest.approx(11 / 7 / 4)


def test_all_gather_gives_every_rank_every_token() -> None:
    moe = Routing(dispatcher=Dispatcher.ALL_GATHER)
    passes = passes_of(TINY, shard_of(ep=4, dp=4, moe=moe))
    assert payloads(passes.forward, "moe.") == {
        "moe.dispatch.gather": (Collective.ALL_GATHER, 4.0 * OWN),
        "moe.combine.scatter": (Collective.REDUCE_SCATTER, 4.0 * OWN),
    }


def test_shared_experts_are_a_dense_mlp_cut_by_tp() -> None:
    shard = shard_of(tp=2, dp=4, ep=4, etp=1, sequence_parallel=True)
    forward = passes_of(WITH_SHARED, shard).forward
    assert gemm(forward, "moe.shared.up") == (OWN, 2 * 32, 64, 1)
    assert gemm(forward, "moe.shared.down") == (OWN, 64, 32, 1)
    assert payloads(forward, "moe.shared") == {
        "moe.shared.up.gather": (Collective.ALL_GATHER, float(OWN)),
        "moe.shared.down.reduce": (Collective.REDUCE_SCATTER, float(OWN)),
    }


def test_shared_experts_may_run_beside_the_trips_of_the_others() -> None:
    stack = fake_stack(overlap={"shared_expert": True})
    forward = comms(passes_of(WITH_SHARED, shard_of(stack=stack, ep=4, dp=4)).forward)
    beside = [(piece.hidden_by, piece.hidden_fraction) for piece in forward.values()]
    assert beside[1:] == [(("moe.shared.up",), 1.0), (("moe.shared.down",), 1.0)]


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("shared_expert", [False, True])
@pytest.mark.parametrize("cp", [1, 2])
@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize("fraction", [0.0, 0.5])
def test_no_compute_hides_two_collectives_of_experts_or_one_of_another_axis_too(
    tp: int, cp: int, shared_expert: bool, backward: bool, fraction: float
) -> None:
    stack = fake_stack(overlap={"expert_fraction": fraction, "shared_expert": shared_expert})
    spread = {"tp": tp, "cp": cp, "dp": 4, "ep": 4, "etp": 1, "sequence_parallel": tp > 1}
    shard = shard_of(stack=stack, moe=Routing(overlap=True), **spread)
    passes = passes_of(WITH_SHARED, shard)
    block = passes.backward if backward else passes.forward
    pieces = comms(block).values()
    trips = [p for p in pieces if "all_to_all" in p.name and p.name.startswith("moe.")]
    others = [p for p in pieces if p not in trips]
    used = [name for piece in trips for name in piece.hidden_by]
    assert len(used) == len(set(used))
    assert not set(used) & {name for piece in others for name in piece.hidden_by}
    assert set(used) <= set(named(block)) | _linears_that_are_absent(set(used), set(named(block)))


def _linears_that_are_absent(used: set[str], there: set[str]) -> set[str]:
    """Windows are named for every kind of attention; a layer has those of one."""
    return {name for name in used - there if name.startswith("attention.")}


def test_unfused_permutation_moves_more() -> None:
    moved = []
    for fused in (True, False):
        stack = fake_stack(kernels={"fused_permute": fused})
        forward = named(passes_of(TINY, shard_of(stack=stack, ep=4, dp=4)).forward)
        pieces = [forward["moe.dispatch.permute"], forward["moe.combine.unpermute"]]
        moved.append([p.bytes / ROW for p in pieces if isinstance(p, MemoryBound)])
    once = OWN + COPIES
    assert moved == [[once, once], [once, once + 2 * COPIES]]


def test_a_gate_on_the_shared_experts_is_not_free() -> None:
    gated = tiny_mixture(SHARED.model_copy(update={"shared_expert_gate": True})).layers()[0]
    assert experts_of(tiny_mixture(SHARED)).shared_intermediate_size == 64
    forward = named(passes_of(gated, shard_of()).forward)
    gate = forward["moe.shared.gate"]
    assert isinstance(gate, MemoryBound)
    assert (gate.bytes, gate.saved) == (3 * ROW * OWN, ROW * OWN)
