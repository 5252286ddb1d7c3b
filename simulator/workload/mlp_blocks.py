"""The feed-forward block of a layer as a value: a dense MLP, or a mixture of experts."""

from __future__ import annotations

from dataclasses import dataclass

GATED_PROJECTIONS = 3
PLAIN_PROJECTIONS = 2


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
class MoeSpec:
    """A mixture of experts in the place of an MLP: router, routed experts, shared experts.

    Each token goes to `experts_per_token` of `experts` MLPs of width `intermediate_size`, and to
    the shared expert. Where `groups` > 1 it goes to experts of at most `groups_per_token` groups
    (node-limited routing: a group is what one scale-up domain holds).
    Source: Fedus et al. 2022, Switch Transformers; DeepSeek-AI 2024, DeepSeek-V3, section 2.1.2.
    """

    hidden_size: int
    experts: int
    experts_per_token: int
    intermediate_size: int
    """Width of one routed expert."""
    gated: bool
    activation: str
    bias: bool = False
    """Of the experts' projections, shared ones too."""
    clamped: bool = False
    """Whether gate and value of a routed expert are clamped before the activation."""
    shared_intermediate_size: int = 0
    """Width of all shared experts together; 0 for none."""
    shared_gate: bool = False
    """Whether the shared expert's output is scaled by a learned gate (Qwen2-MoE)."""
    router_bias: bool = False
    """A number an expert: the router's bias, or the correction that balances loads without a
    loss (DeepSeek-V3)."""
    groups: int = 1
    groups_per_token: int = 1

    @property
    def projections(self) -> int:
        """Weight matrices of an expert: 3 where gated, else 2."""
        return GATED_PROJECTIONS if self.gated else PLAIN_PROJECTIONS

    @property
    def parameters_per_expert(self) -> int:
        """Weights and biases of one routed expert."""
        weights = self.projections * self.hidden_size * self.intermediate_size
        biases = (self.projections - 1) * self.intermediate_size + self.hidden_size
        return weights + self.bias * biases

    @property
    def expert_parameters(self) -> int:
        """Parameters that expert parallelism divides: all routed experts."""
        return self.experts * self.parameters_per_expert

    @property
    def sharded_parameters(self) -> int:
        """The shared experts' weights and column biases, which tensor parallelism divides."""
        weights = self.projections * self.hidden_size * self.shared_intermediate_size
        return weights + self.bias * (self.projections - 1) * self.shared_intermediate_size

    @property
    def replicated_parameters(self) -> int:
        """The router, the shared expert's gate, and its bias on the way out."""
        router = self.experts * (self.hidden_size + self.router_bias)
        shared_bias = self.bias and self.shared_intermediate_size > 0
        return router + self.hidden_size * (self.shared_gate + shared_bias)
