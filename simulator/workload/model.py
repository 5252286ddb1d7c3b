"""A model's description in Hugging Face names, and what follows from it: layers, parameters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from simulator.files import FileRecord
from simulator.workload.layer import LayerSpec, Norm, QkNorm, norm_parameters
from simulator.workload.layer_order import layer_order
from simulator.workload.model_parts import (
    MAX_HEADS,
    MAX_LAYERS,
    Heads,
    LayerOverride,
    Layers,
    LayerType,
    Position,
    Width,
)

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
    """A dense decoder-only transformer."""

    name: str = Field(min_length=1, max_length=200)
    source: str = ""
    """Where the numbers come from."""
    published_parameters: int | None = Field(default=None, ge=1)
    """As published, to the digit; None where only a rounded figure is."""

    num_hidden_layers: Layers
    hidden_size: Width
    num_attention_heads: Heads
    num_key_value_heads: Heads
    """May be left out of files where it is num_attention_heads."""
    head_dim: Width
    """May be left out of files where it is hidden_size / num_attention_heads."""
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
    layer_types: tuple[LayerType, ...] | None = None
    """Full or sliding for each layer, where no pattern says it."""
    layer_overrides: tuple[LayerOverride, ...] = ()

    @field_validator("num_key_value_heads")
    @classmethod
    def _groups_are_even(cls, value: int, info: ValidationInfo) -> int:
        _check_groups(value, info.data.get("num_attention_heads"))
        return value

    @field_validator("no_rope_layers")
    @classmethod
    def _layers_exist(cls, value: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        layers = info.data.get("num_hidden_layers", MAX_LAYERS)
        if any(index >= layers for index in value):
            raise ValueError(f"must be below num_hidden_layers {layers}; use 0 to {layers - 1}")
        return value

    @field_validator("layer_types")
    @classmethod
    def _types_cover_layers(
        cls, value: tuple[LayerType, ...] | None, info: ValidationInfo
    ) -> tuple[LayerType, ...] | None:
        layers = info.data.get("num_hidden_layers")
        if value is not None and layers is not None and len(value) != layers:
            raise ValueError(
                f"must have one entry a layer: {layers} entries, not {len(value)}; "
                f"use num_hidden_layers {len(value)} or the missing entries"
            )
        if value and LayerType.SLIDING in value and info.data.get("sliding_window", 1) is None:
            raise ValueError('"sliding_attention" needs a sliding_window; use a number of tokens')
        return value

    @field_validator("layer_overrides")
    @classmethod
    def _overrides_fit(
        cls, value: tuple[LayerOverride, ...], info: ValidationInfo
    ) -> tuple[LayerOverride, ...]:
        layers = info.data.get("num_hidden_layers", MAX_LAYERS)
        count = Counter(index for override in value for index in override.layers)
        for index, times in count.items():
            if index >= layers or times > 1:
                raise ValueError(
                    f"layer {index} must be below num_hidden_layers {layers} and overridden once; "
                    f"use each of 0 to {layers - 1} at most once"
                )
        for override in value:
            heads = override.num_attention_heads or info.data.get("num_attention_heads")
            groups = override.num_key_value_heads or info.data.get("num_key_value_heads")
            if groups is not None:
                _check_groups(groups, heads)
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
        """All parameters; shared ones count once."""
        layers = sum(layer.parameters * n for layer, n in self.layer_groups().items())
        ends = self.embedding_parameters + self.final_norm_parameters + self.head_parameters
        return layers + ends

    @property
    def _norm_parameters(self) -> int:
        return norm_parameters(self.norm, self.hidden_size, bias=self.norm_bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedModel:
    """A model read from a file, and what its reader left out or assumed, for the user to see."""

    spec: ModelSpec
    notes: tuple[str, ...] = ()


def _check_groups(key_value_heads: int, heads: int | None) -> None:
    if heads is not None and heads % key_value_heads:
        legal = [n for n in range(1, min(heads, MAX_HEADS) + 1) if heads % n == 0]
        shown = ", ".join(str(n) for n in legal)
        raise ValueError(f"must divide num_attention_heads {heads}; use one of {shown}")
