"""A linear layer's weight as one rank holds it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from simulator.workload.job import LoraTarget, Part


class Split(StrEnum):
    """How tensor parallelism cuts a linear layer."""

    COLUMN = "column"
    """By outputs, behind a norm; sequence parallelism gathers its input."""
    ROW = "row"
    """By inputs; sequence parallelism scatters its output, and gathers that one's gradient."""
    WHOLE = "whole"
    """Not along the residual stream: replicated layers, and experts, which have axes of theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A (k, n) weight, as one rank holds it, applied to (tokens, k)."""

    name: str
    tokens: int
    n: int
    k: int
    part: Part
    kept_tokens: float | None = None
    """Tokens of the input that stay for the weight gradient; None is all."""
    bias: bool = False
    target: LoraTarget | None = None
    """What an adapter of this layer is called; None where it can have none."""
    narrow: bool = True
    """Whether it runs in the job's precision where that is below 16 bits; the head does not."""
    batch: int = 1
    """Weights side by side, each applied to its own `tokens`: the experts of a rank."""

    @property
    def split(self) -> Split:
        """How tensor parallelism cuts it."""
        if self.part is Part.EXPERTS:
            return Split.WHOLE
        if self.target in (LoraTarget.PROJ, LoraTarget.FC2):
            return Split.ROW
        return Split.WHOLE if self.kept_tokens is None and self.target is None else Split.COLUMN

    @property
    def parameters(self) -> int:
        """Parameters of all its weights, biases apart."""
        return self.n * self.k * self.batch
