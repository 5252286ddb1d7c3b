"""A model's description in Hugging Face names, and what follows from it: layers, parameters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from simulator.files import FileRecord
from simulator.workload.layer import LayerSpec, Norm, QkNorm, norm_parameters
from simulator.workload.layer_order import layer_order, mtp_layer
from simulator.workload.model_checks import (
    check_chunks_are_used,
    check_experts,
    check_groups,
    check_latent_attention,
    check_layer_types,
    check_layers_exist,
    check_overrides,
)
from simulator.workload.model_parts import (
    MAX_LAYERS,
    Experts,
    Heads,
    LatentAttention,
    LayerOverride,
    Layers,
    LayerType,
    Position,
    Width,
)

MTP_NORMS = 3
"""Of the embedding, of the hidden state and before the output head (enorm, hnorm, shared_head)."""

__all__ = [
    "ImportedModel",
    "LayerOverride",
    "LayerSpec",
    "LayerType",
    "ModelSpec",
    "Norm",
    "Position",
    "QkNorm",
]


class ModelSpec(FileRecord):
    """A decoder-only transformer, dense or with a mixture of experts."""

    name: str = Field(min_length=1, max_length=200)
    source: str = ""
    """Where the numbers come from."""
    published_parameters: int | None = Field(default=None, ge=1)
    """As published, to the digit; None where only a rounded figure is."""
    published_active_parameters: int | None = Field(default=None, ge=1)
    """Likewise of those that a token meets, counted as `active_parameters` is."""

    num_hidden_layers: Layers
    hidden_size: Width
    num_attention_heads: Heads
    num_key_value_heads: Heads
    """May be left out of files where it is num_attention_heads."""
    head_dim: Width
    """May be left out of files where it is hidden_size / num_attention_heads, or latent attention
    gives it."""
    intermediate_size: Width
    vocab_size: Width
    tie_word_embeddings: bool
    """Whether the output head shares the input embedding's weights."""

    gated_mlp: bool
    activation: str = Field(min_length=1, max_length=40)
    mlp_bias: bool = False
    attention_bias: bool = False
    """Of the query, key and value projections."""
    attention_output_bias: bool = False
    lm_head_bias: bool = False
    parallel_block: bool = False
    """Whether attention and MLP of a layer both read its input and are added together."""

    norm: Norm
    norm_bias: bool = False
    norms_per_layer: int = Field(default=2, ge=0, le=4)
    qk_norm: QkNorm = QkNorm.NONE
    attention_sinks: bool = False
    """Whether each head has a learned sink in its softmax (GPT-OSS)."""
    final_norm: bool = True
    embedding_norm: bool = False

    position: Position
    max_position_embeddings: Width
    learned_positions: Width | None = None
    """Rows of the table of learned positions where they differ from max_position_embeddings."""
    no_rope_layers: tuple[Annotated[int, Field(ge=0, lt=MAX_LAYERS)], ...] = ()
    """Indices from 0 of layers without rotary embeddings in a model that has them."""
    sliding_window: Width | None = None
    sliding_window_pattern: int | None = Field(default=None, ge=1, le=MAX_LAYERS)
    """Every so many layers attention is full, in the others it slides; None: all slide."""
    attention_chunk_size: Width | None = None
    """Tokens of a chunk of chunked attention."""
    layer_types: tuple[LayerType, ...] | None = Field(default=None, validate_default=True)
    """Full, sliding or chunked for each layer, where no pattern says it."""
    mla: LatentAttention | None = None
    """Latent attention in the place of grouped heads."""
    moe: Experts | None = None
    """None: all layers have a dense MLP."""
    num_nextn_predict_layers: int = Field(default=0, ge=0, le=64)
    """Modules of multi-token prediction behind the last layer, each with a layer like the last."""
    layer_overrides: tuple[LayerOverride, ...] = ()

    @field_validator("num_key_value_heads")
    @classmethod
    def _groups_are_even(cls, value: int, info: ValidationInfo) -> int:
        check_groups(value, info.data.get("num_attention_heads"))
        return value

    @field_validator("no_rope_layers")
    @classmethod
    def _layers_exist(cls, value: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        check_layers_exist(value, info.data)
        return value

    @field_validator("layer_types")
    @classmethod
    def _types_cover_layers(
        cls, value: tuple[LayerType, ...] | None, info: ValidationInfo
    ) -> tuple[LayerType, ...] | None:
        if value is not None:
            check_layer_types(value, info.data)
        check_chunks_are_used(value, info.data)
        return value

    @field_validator("mla")
    @classmethod
    def _latent_attention_stands_alone(
        cls, value: LatentAttention | None, info: ValidationInfo
    ) -> LatentAttention | None:
        if value is not None:
            check_latent_attention(value, info.data)
        return value

    @field_validator("moe")
    @classmethod
    def _experts_have_layers(cls, value: Experts | None, info: ValidationInfo) -> Experts | None:
        if value is not None:
            check_experts(value, info.data)
        return value

    @field_validator("layer_overrides")
    @classmethod
    def _overrides_fit(
        cls, value: tuple[LayerOverride, ...], info: ValidationInfo
    ) -> tuple[LayerOverride, ...]:
        check_overrides(value, info.data)
        return value

    def layers(self) -> tuple[LayerSpec, ...]:
        """Return the layers, first to last."""
        distinct, order = layer_order(self)
        return tuple(distinct[index] for index in order)

    def layer_groups(self, first: int = 0, stop: int | None = None) -> dict[LayerSpec, int]:
        """Return the distinct layers from `first` up to, not including, `stop`, with counts."""
        distinct, order = layer_order(self)
        return {distinct[index]: n for index, n in Counter(order[first:stop]).items()}

    def layer_parameters(self, layer: LayerSpec) -> int:
        """Return all parameters of one layer."""
        return layer.parameters

    @property
    def position_parameters(self) -> int:
        """Parameters of the table of learned positions."""
        if self.position is not Position.LEARNED:
            return 0
        return (self.learned_positions or self.max_position_embeddings) * self.hidden_size

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the input: token embedding, learned positions and their norm."""
        own_norm = self._norm_parameters * self.embedding_norm
        return self.vocab_size * self.hidden_size + self.position_parameters + own_norm

    @property
    def final_norm_parameters(self) -> int:
        """Parameters of the norm before the output head."""
        return self._norm_parameters * self.final_norm

    @property
    def head_parameters(self) -> int:
        """Parameters of the output head that it does not share with the input embedding."""
        own = 0 if self.tie_word_embeddings else self.hidden_size
        return self.vocab_size * (own + self.lm_head_bias)

    @property
    def parameters(self) -> int:
        """All parameters; shared ones count once, modules of multi-token prediction do not."""
        layers = sum(layer.parameters * n for layer, n in self.layer_groups().items())
        return layers + self._end_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that one token meets: all but the routed experts that it is not sent to.

        The whole embedding table, the output head, routers and shared experts count, as in the
        12.9e9 of Mixtral 8x7B (12,879,925,248) and the 37e9 of DeepSeek-V3 (37,552,297,472).
        Some reports leave out the input embedding: GPT-OSS-120B's 5.1e9 are 5,711,982,912 here.
        """
        layers = sum(layer.active_parameters * n for layer, n in self.layer_groups().items())
        return layers + self._end_parameters

    def mtp_layer(self) -> LayerSpec:
        """Return the layer of a module of multi-token prediction: one like the last."""
        return mtp_layer(self)

    @property
    def mtp_projection_parameters(self) -> int:
        """Parameters of a module's `eh_proj`: 2 h -> h, from a hidden state and an embedding."""
        return 2 * self.hidden_size**2

    @property
    def mtp_norm_parameters(self) -> int:
        """Parameters of a module's norms: of the embedding, of the hidden state, of the output."""
        return MTP_NORMS * self._norm_parameters

    @property
    def mtp_parameters(self) -> int:
        """Parameters of all modules of multi-token prediction; 0 where there are none.

        Each has a layer, a projection and three norms; embedding and output head are the main
        model's own. Source: DeepSeek-AI 2024, DeepSeek-V3, section 2.2 (eq. 21-23).
        """
        module = self.mtp_layer().parameters + self.mtp_projection_parameters
        return self.num_nextn_predict_layers * (module + self.mtp_norm_parameters)

    @property
    def _end_parameters(self) -> int:
        return self.embedding_parameters + self.final_norm_parameters + self.head_parameters

    @property
    def _norm_parameters(self) -> int:
        return norm_parameters(self.norm, self.hidden_size, bias=self.norm_bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedModel:
    """A model read from a file, and what its reader left out or assumed, for the user to see."""

    spec: ModelSpec
    notes: tuple[str, ...] = ()
