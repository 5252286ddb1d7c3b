"""The words and bounds that model descriptions are written in."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from simulator.files import FileRecord

MAX_LAYERS = 10_000
MAX_WIDTH = 2**24
"""Of hidden, intermediate and vocabulary sizes and window: far above any model, yet small enough
that every product of three stays exact as a float."""
MAX_HEADS = 2**16
MAX_EXPERTS = 2**16

Layers = Annotated[int, Field(ge=1, le=MAX_LAYERS)]
Width = Annotated[int, Field(ge=1, le=MAX_WIDTH)]
Heads = Annotated[int, Field(ge=1, le=MAX_HEADS)]


class Position(StrEnum):
    """How a model knows the order of tokens; only `learned` has parameters."""

    ROPE = "rope"
    LEARNED = "learned"
    ALIBI = "alibi"
    NONE = "none"


class LayerType(StrEnum):
    """Which keys the attention of a layer sees, in Hugging Face's words."""

    FULL = "full_attention"
    SLIDING = "sliding_attention"
    CHUNKED = "chunked_attention"


class BlockKind(StrEnum):
    """What stands in the place of an attention or MLP block in an overridden layer."""

    NORMAL = "normal"
    NONE = "none"
    LINEAR = "linear"


class LatentAttention(FileRecord):
    """Multi-head latent attention (DeepSeek-V2 and V3), in Hugging Face's names.

    Training expands the latents: every head has its own key and value, so the model's
    num_key_value_heads is num_attention_heads and its head_dim qk_nope_head_dim +
    qk_rope_head_dim, which files leave out.
    """

    q_lora_rank: Width | None = None
    """None: queries are projected from the hidden state directly."""
    kv_lora_rank: Width
    qk_nope_head_dim: Width
    qk_rope_head_dim: Width
    v_head_dim: Width


class Experts(FileRecord):
    """The mixture of experts in the place of a model's MLPs."""

    num_experts: int = Field(ge=1, le=MAX_EXPERTS)
    """Routed experts of a layer."""
    num_experts_per_tok: int = Field(ge=1, le=MAX_EXPERTS)
    """Experts that a token goes to (top-k)."""
    moe_intermediate_size: Width
    """Width of one routed expert."""
    shared_expert_intermediate_size: int = Field(default=0, ge=0, le=MAX_WIDTH)
    """Width of all shared experts together; 0 for none."""
    shared_expert_gate: bool = False
    """Whether a learned gate scales the shared expert's output."""
    router_bias: bool = False
    """Whether the router has a bias, or a correction of its scores, an expert."""
    expert_bias: bool = False
    """Whether the experts' projections, shared ones too, have biases."""
    clamped: bool = False
    """Whether the experts' gate and value are clamped before the activation (GPT-OSS)."""
    n_group: int = Field(default=1, ge=1, le=MAX_EXPERTS)
    """Groups of experts, of which a token's experts lie in at most `topk_group`."""
    topk_group: int = Field(default=1, ge=1, le=MAX_EXPERTS, validate_default=True)
    dense_layers: tuple[Annotated[int, Field(ge=0, lt=MAX_LAYERS)], ...] = ()
    """Indices from 0 of layers that keep a dense MLP, of `intermediate_size`."""

    @field_validator("num_experts_per_tok")
    @classmethod
    def _experts_suffice(cls, value: int, info: ValidationInfo) -> int:
        experts = info.data.get("num_experts", MAX_EXPERTS)
        if value > experts:
            raise ValueError(f"must be at most num_experts {experts}; use {experts} or fewer")
        return value

    @field_validator("shared_expert_gate")
    @classmethod
    def _gate_has_an_expert(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("shared_expert_intermediate_size") == 0:
            raise ValueError("needs a shared_expert_intermediate_size above 0; use false")
        return value

    @field_validator("n_group")
    @classmethod
    def _groups_are_even(cls, value: int, info: ValidationInfo) -> int:
        experts = info.data.get("num_experts")
        if experts is not None and experts % value:
            near = max(n for n in range(1, min(value, experts) + 1) if experts % n == 0)
            raise ValueError(f"must divide num_experts {experts}; use {near}")
        return value

    @field_validator("topk_group")
    @classmethod
    def _groups_hold_enough(cls, value: int, info: ValidationInfo) -> int:
        groups = info.data.get("n_group")
        experts = info.data.get("num_experts")
        chosen = info.data.get("num_experts_per_tok")
        if groups is None or experts is None or chosen is None:
            return value
        least = -(-chosen * groups // experts)
        if value > groups or value < least:
            raise ValueError(
                f"must be at most n_group {groups}, and hold num_experts_per_tok {chosen} with "
                f"{experts // groups} experts a group; use {least} to {groups}"
            )
        return value

    @field_validator("dense_layers")
    @classmethod
    def _layers_are_distinct(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        ordered = tuple(sorted(set(value)))
        if value != ordered:
            raise ValueError(f"must be ascending without repeats; use {list(ordered)}")
        return value


class LayerOverride(FileRecord):
    """What is different in some layers, as in models found by architecture search."""

    layers: tuple[Annotated[int, Field(ge=0, lt=MAX_LAYERS)], ...] = Field(min_length=1)
    """Indices from 0."""
    attention: BlockKind = BlockKind.NORMAL
    num_attention_heads: Heads | None = None
    num_key_value_heads: Heads | None = None
    mlp: BlockKind = BlockKind.NORMAL
    intermediate_size: Width | None = None
