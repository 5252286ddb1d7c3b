"""One transformer layer as a value: its attention, its MLP, its norms and their parameters.

Two layers that compute the same thing are equal, so a model is a handful of distinct layers and
how often each occurs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from simulator.workload.attention_blocks import AttentionSpec, MlaSpec, QkNorm
from simulator.workload.mlp_blocks import MlpSpec, MoeSpec

__all__ = [
    "AttentionBlock",
    "AttentionSpec",
    "LayerSpec",
    "LinearSpec",
    "MlaSpec",
    "MlpBlock",
    "MlpSpec",
    "MoeSpec",
    "Norm",
    "QkNorm",
    "norm_parameters",
]


class Norm(StrEnum):
    """How hidden states are normalised; decides weights and, for layernorm, a bias."""

    RMSNORM = "rmsnorm"
    LAYERNORM = "layernorm"
    NONPARAMETRIC = "nonparametric"


def norm_parameters(norm: Norm, width: int, *, bias: bool) -> int:
    """Return the parameters of one norm over `width` channels."""
    if norm is Norm.NONPARAMETRIC:
        return 0
    return width * (2 if bias else 1)


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


AttentionBlock: TypeAlias = AttentionSpec | MlaSpec | LinearSpec
MlpBlock: TypeAlias = MlpSpec | MoeSpec | LinearSpec


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
    def expert_parameters(self) -> int:
        """Parameters of all routed experts, which expert parallelism divides."""
        return self.mlp.expert_parameters if isinstance(self.mlp, MoeSpec) else 0

    @property
    def parameters(self) -> int:
        """All parameters of the layer."""
        return self.sharded_parameters + self.replicated_parameters + self.expert_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that one token meets."""
        if not isinstance(self.mlp, MoeSpec):
            return self.parameters
        idle = self.mlp.experts - self.mlp.experts_per_token
        return self.parameters - idle * self.mlp.parameters_per_expert
