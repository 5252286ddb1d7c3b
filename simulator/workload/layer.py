"""One transformer layer as a value: its attention, its MLP, its norms and their parameters.

Two layers that compute the same thing are equal, so a model is a handful of distinct layers and
how often each occurs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

GATED_PROJECTIONS = 3
PLAIN_PROJECTIONS = 2


class Norm(StrEnum):
    """How hidden states are normalised; decides weights and, for layernorm, a bias."""

    RMSNORM = "rmsnorm"
    LAYERNORM = "layernorm"
    NONPARAMETRIC = "nonparametric"


class QkNorm(StrEnum):
    """Normalisation of queries and keys before their product.

    `per-head` shares one weight of head_dim between all heads (Qwen 3, Gemma 3); `full-width` has
    a weight for each channel of each head (OLMo 2, Command R+).
    """

    NONE = "none"
    PER_HEAD = "per-head"
    FULL_WIDTH = "full-width"


def norm_parameters(norm: Norm, width: int, *, bias: bool) -> int:
    """Return the parameters of one norm over `width` channels."""
    if norm is Norm.NONPARAMETRIC:
        return 0
    return width * (2 if bias else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSpec:
    """Softmax attention with grouped key/value heads."""

    hidden_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: QkNorm = QkNorm.NONE
    window: int | None = None
    """Keys a query attends to; None is all that came before."""
    rope: bool = True
    """Whether rotary embeddings are applied to queries and keys."""

    @property
    def query_width(self) -> int:
        """Channels of all query heads together."""
        return self.num_attention_heads * self.head_dim

    @property
    def key_value_width(self) -> int:
        """Channels of all key heads together; the values have as many."""
        return self.num_key_value_heads * self.head_dim

    @property
    def query_parameters(self) -> int:
        """Weights and bias of the query projection."""
        return (self.hidden_size + self.qkv_bias) * self.query_width

    @property
    def key_value_parameters(self) -> int:
        """Weights and biases of the key and value projections together."""
        return 2 * (self.hidden_size + self.qkv_bias) * self.key_value_width

    @property
    def qk_norm_parameters(self) -> int:
        """Weights of the norms of queries and keys."""
        match self.qk_norm:
            case QkNorm.NONE:
                return 0
            case QkNorm.PER_HEAD:
                return 2 * self.head_dim
            case QkNorm.FULL_WIDTH:
                return self.query_width + self.key_value_width

    @property
    def sharded_parameters(self) -> int:
        """Parameters that Megatron's tensor parallelism divides among ranks.

        The query, key and value projections (column parallel, with their biases) and the weights
        of the output projection (row parallel). Where tp is above `num_key_value_heads` each key
        and value head is held by several ranks: `key_value_parameters` then divide by the heads
        only. Source: Shoeybi et al. 2019, section 3; Megatron-LM core/transformer/attention.py.
        """
        own_norm = self.qk_norm_parameters if self.qk_norm is QkNorm.FULL_WIDTH else 0
        output = self.query_width * self.hidden_size
        return self.query_parameters + self.key_value_parameters + output + own_norm

    @property
    def replicated_parameters(self) -> int:
        """Parameters that every tensor-parallel rank holds: output bias and shared qk norms."""
        own_norm = self.qk_norm_parameters if self.qk_norm is QkNorm.PER_HEAD else 0
        return self.hidden_size * self.output_bias + own_norm


@dataclass(frozen=True, slots=True, kw_only=True)
class MlpSpec:
    """A dense feed-forward block: gate, up and down projections, or up and down alone."""

    hidden_size: int
    intermediate_size: int
    gated: bool
    activation: str
    bias: bool = False

    @property
    def projections(self) -> int:
        """Weight matrices: 3 where gated, else 2."""
        return GATED_PROJECTIONS if self.gated else PLAIN_PROJECTIONS

    @property
    def sharded_parameters(self) -> int:
        """All weights, and the biases of the column-parallel projections."""
        weights = self.projections * self.hidden_size * self.intermediate_size
        return weights + self.bias * (self.projections - 1) * self.intermediate_size

    @property
    def replicated_parameters(self) -> int:
        """The bias of the row-parallel projection."""
        return self.hidden_size * self.bias


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSpec:
    """One hidden-to-hidden matrix that stands in for an attention or an MLP.

    Tensor parallel by columns, outputs gathered. Source: Puzzle (Bercovich et al. 2024);
    Megatron-LM core/models/gpt/heterogeneous/heterogeneous_layer_specs.py.
    """

    hidden_size: int
    bias: bool = False

    @property
    def sharded_parameters(self) -> int:
        """The matrix and its bias."""
        return (self.hidden_size + self.bias) * self.hidden_size

    @property
    def replicated_parameters(self) -> int:
        """None are."""
        return 0


AttentionBlock: TypeAlias = AttentionSpec | LinearSpec
MlpBlock: TypeAlias = MlpSpec | LinearSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSpec:
    """One layer: an attention block, an MLP block (either may be absent) and the norms.

    >>> mlp = MlpSpec(hidden_size=10, intermediate_size=40, gated=False, activation="gelu")
    >>> layer = LayerSpec(hidden_size=10, attention=None, mlp=mlp, norm=Norm.LAYERNORM, norms=1)
    >>> layer.sharded_parameters, layer.replicated_parameters
    (800, 10)
    """

    hidden_size: int
    attention: AttentionBlock | None
    mlp: MlpBlock | None
    norm: Norm
    norm_bias: bool = False
    norms: int
    """Norms over the hidden size in this layer; norms of queries and keys are not counted."""
    parallel: bool = False
    """Whether the MLP reads the layer's input beside the attention instead of after it."""

    @property
    def norm_parameters(self) -> int:
        """Parameters of the norms over the hidden size."""
        return self.norms * norm_parameters(self.norm, self.hidden_size, bias=self.norm_bias)

    @property
    def sharded_parameters(self) -> int:
        """Parameters that tensor parallelism divides among its ranks."""
        return sum(block.sharded_parameters for block in (self.attention, self.mlp) if block)

    @property
    def replicated_parameters(self) -> int:
        """Parameters that every tensor-parallel rank holds."""
        blocks = (self.attention, self.mlp)
        return self.norm_parameters + sum(b.replicated_parameters for b in blocks if b)

    @property
    def parameters(self) -> int:
        """All parameters of the layer."""
        return self.sharded_parameters + self.replicated_parameters
