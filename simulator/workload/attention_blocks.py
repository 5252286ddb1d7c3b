"""The attention of a layer as a value: grouped heads, or heads expanded from latents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class QkNorm(StrEnum):
    """Normalisation of queries and keys before their product.

    `per-head` shares one weight of head_dim between all heads (Qwen 3, Gemma 3); `full-width` has
    a weight for each channel of each head (OLMo 2, Command R+); `nonparametric` has none, and is
    only in layers with rotary embeddings (Llama 4).
    """

    NONE = "none"
    PER_HEAD = "per-head"
    FULL_WIDTH = "full-width"
    NONPARAMETRIC = "nonparametric"


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
    chunk: int | None = None
    """Length of the chunks that tokens attend within (Llama 4); None is the whole sequence."""
    rope: bool = True
    """Whether rotary embeddings are applied to queries and keys."""
    sinks: bool = False
    """Whether each head has a learned sink in its softmax (GPT-OSS)."""

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
            case QkNorm.NONE | QkNorm.NONPARAMETRIC:
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
        own_norm += self.num_attention_heads * self.sinks
        return self.query_parameters + self.key_value_parameters + output + own_norm

    @property
    def replicated_parameters(self) -> int:
        """Parameters that every tensor-parallel rank holds: output bias and shared qk norms."""
        own_norm = self.qk_norm_parameters if self.qk_norm is QkNorm.PER_HEAD else 0
        return self.hidden_size * self.output_bias + own_norm


@dataclass(frozen=True, slots=True, kw_only=True)
class MlaSpec:
    """Multi-head latent attention: queries, keys and values come from low-rank latents.

    Training runs the expanded form: every head has a key of qk_nope_head_dim + qk_rope_head_dim
    channels (the rotary part is one for all heads) and a value of v_head_dim.
    Source: DeepSeek-AI 2024, DeepSeek-V2, section 2.1; Megatron-LM
    core/transformer/multi_latent_attention.py.
    """

    hidden_size: int
    num_attention_heads: int
    q_lora_rank: int | None
    """None: queries are projected from the hidden state directly (DeepSeek-V2-Lite)."""
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    bias: bool = False
    """Of the down projections."""
    output_bias: bool = False

    @property
    def qk_head_dim(self) -> int:
        """Channels of a query or key head."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def query_width(self) -> int:
        """Channels of all query heads together."""
        return self.num_attention_heads * self.qk_head_dim

    @property
    def up_width(self) -> int:
        """Channels that the up projection of keys and values writes, all heads together."""
        return self.num_attention_heads * (self.qk_nope_head_dim + self.v_head_dim)

    @property
    def value_width(self) -> int:
        """Channels of all value heads together: the input of the output projection."""
        return self.num_attention_heads * self.v_head_dim

    @property
    def down_width(self) -> int:
        """Channels of the latents: of queries, of keys and values, and the shared rotary key."""
        return (self.q_lora_rank or 0) + self.kv_lora_rank + self.qk_rope_head_dim

    @property
    def sharded_parameters(self) -> int:
        """The up projections (column parallel) and the output projection (row parallel)."""
        query = (self.q_lora_rank or self.hidden_size) * self.query_width
        return query + self.kv_lora_rank * self.up_width + self.value_width * self.hidden_size

    @property
    def replicated_parameters(self) -> int:
        """The down projections, the latents' norms and the output bias."""
        down = (self.hidden_size + self.bias) * self.down_width
        norms = (self.q_lora_rank or 0) + self.kv_lora_rank
        return down + norms + self.hidden_size * self.output_bias
