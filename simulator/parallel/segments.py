"""Layers with what is done about their activations, and the chunks that they form on a stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from simulator.parallel.layout import Recompute
from simulator.workload.layer import LayerSpec

WHOLE_CHUNK = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """A layer with what is done about its activations."""

    layer: LayerSpec
    recompute: Recompute = Recompute.NONE
    unit: int = 1
    """With full recomputation: consecutive layers that are recomputed together."""
    holds_input: bool = True
    """Whether it is the first layer of its unit, whose input is what the unit keeps."""
    offload: bool = False
    """Whether what it keeps for the backward pass waits in host memory."""
    window: int = 1
    """Layers that compute while it is copied there, or back."""


Layers = tuple[tuple[LayerWork, int], ...]
"""Distinct layers with how often each occurs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Consecutive layers, with the ends of the model: all that decides what their passes run."""

    layers: Layers
    embedding: bool = False
    head: bool = False
    mtp: tuple[LayerWork, int] | None = None
    """The layer of a multi-token-prediction module, and how many there are before the head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment(Section):
    """A section of a chunk whose gradients (or parameters) travel together."""

    parameters: float
    """On one rank, routed experts apart, after tensor parallelism and before ZeRO."""
    expert_parameters: float = 0.0
    """Of routed experts on one rank, after expert and expert-tensor parallelism."""
    frozen: float = 0.0
    """Of `parameters`, those that are not trained; adapters are among `parameters`."""
    frozen_experts: float = 0.0
    """Of `expert_parameters`."""
    narrow: float = 0.0
    """Of `parameters`, weights of linear layers, which may run in 8 or 4 bits."""
    narrow_experts: float = 0.0
    """Of `expert_parameters`."""

    @property
    def trained(self) -> float:
        """Trained parameters, routed experts apart."""
        return self.parameters - self.frozen

    @property
    def trained_experts(self) -> float:
        """Trained parameters of routed experts."""
        return self.expert_parameters - self.frozen_experts


@dataclass(frozen=True, kw_only=True, eq=False)
class Chunk:
    """The part of the model on one virtual stage, whole and cut into segments."""

    whole: Segment
    cut: Callable[[], tuple[Segment, ...]] = field(repr=False)
    """Cuts it; most chunks of a search are never cut."""

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """Its segments, in model order."""
        return self.cut()
