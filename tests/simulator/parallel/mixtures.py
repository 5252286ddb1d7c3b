"""Mixtures of experts whose numbers can be checked by hand, and how to look into their passes."""

from __future__ import annotations

from simulator.parallel.blocks import layer_passes
from simulator.parallel.layout import ParallelLayout, Recompute
from simulator.parallel.shard import Shard, make_shard
from simulator.parallel.work import Block, CommWork, PassPair, Piece
from simulator.workload.job import Routing
from simulator.workload.layer import LayerSpec, MoeSpec
from simulator.workload.model import ModelSpec, Norm, Position
from simulator.workload.model_parts import Experts, LatentAttention
from simulator.workload.operator import Gemm
from simulator.workload.stack import Stack
from tests.fakes import fake_stack, tiny_job, tiny_model

SEQ = 32
EXPERTS = Experts(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=128)
SHARED = Experts(
    num_experts=8,
    num_experts_per_tok=2,
    moe_intermediate_size=128,
    shared_expert_intermediate_size=64,
)
LATENT = LatentAttention(
    q_lora_rank=32, kv_lora_rank=16, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16
)


def tiny_mixture(experts: Experts | None = EXPERTS, **changes: object) -> ModelSpec:
    """A gated, bias-free model of 4 layers, 64 channels and 8 experts of width 128, of which 2."""
    plain: dict[str, object] = {
        "moe": experts,
        "gated_mlp": True,
        "mlp_bias": False,
        "attention_bias": False,
        "attention_output_bias": False,
        "norm": Norm.RMSNORM,
        "norm_bias": False,
        "position": Position.ROPE,
    }
    return tiny_model(**{**plain, **changes})


def tiny_latent(experts: Experts | None = EXPERTS, **changes: object) -> ModelSpec:
    """The same with latent attention: 4 heads of 16 + 8 and 16 channels, latents of 32 and 16."""
    return tiny_mixture(experts, **{"mla": LATENT, "head_dim": 24, **changes})


def shard_of(
    *, stack: Stack | None = None, moe: Routing | None = None, seq: int = SEQ, **layout: object
) -> Shard:
    """Return what a rank of a layout of 2 sequences a micro-batch sees, 8 ranks a domain."""
    asked = ParallelLayout.model_validate({"micro_batch_size": 2, **layout})
    job = tiny_job(seq_length=seq, moe=moe or Routing())
    return make_shard(asked, job, stack or fake_stack(), 8)


def passes_of(layer: LayerSpec, shard: Shard) -> PassPair:
    """Return both passes over a layer that recomputes nothing."""
    return layer_passes(layer, shard, Recompute.NONE)


def experts_of(model: ModelSpec) -> MoeSpec:
    """Return the mixture of a model's last layer."""
    mlp = model.layers()[-1].mlp
    assert isinstance(mlp, MoeSpec)
    return mlp


def named(block: Block) -> dict[str, Piece]:
    """Return the pieces of a block by name; no two have the same."""
    pieces = {piece.name: piece for piece in block.pieces}
    assert len(pieces) == len(block.pieces)
    return pieces


def comms(block: Block, beginning: str = "") -> dict[str, CommWork]:
    """Return the collectives of a block whose names begin so."""
    return {
        name: piece
        for name, piece in named(block).items()
        if isinstance(piece, CommWork) and name.startswith(beginning)
    }


def gemm(block: Block, name: str) -> tuple[int, int, int, int]:
    """Return m, n, k and batch of a product."""
    piece = named(block)[name]
    assert isinstance(piece, Gemm)
    return piece.m, piece.n, piece.k, piece.batch
