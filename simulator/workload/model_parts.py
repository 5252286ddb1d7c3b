"""The words and bounds that model descriptions are written in."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from simulator.files import FileRecord

MAX_LAYERS = 10_000
MAX_WIDTH = 2**24
"""Of hidden, intermediate and vocabulary sizes and window: far above any model, yet small enough
that every product of three stays exact as a float."""
MAX_HEADS = 2**16

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


class BlockKind(StrEnum):
    """What stands in the place of an attention or MLP block in an overridden layer."""

    NORMAL = "normal"
    NONE = "none"
    LINEAR = "linear"


class LayerOverride(FileRecord):
    """What is different in some layers, as in models found by architecture search."""

    layers: tuple[Annotated[int, Field(ge=0, lt=MAX_LAYERS)], ...] = Field(min_length=1)
    """Indices from 0."""
    attention: BlockKind = BlockKind.NORMAL
    num_attention_heads: Heads | None = None
    num_key_value_heads: Heads | None = None
    mlp: BlockKind = BlockKind.NORMAL
    intermediate_size: Width | None = None
