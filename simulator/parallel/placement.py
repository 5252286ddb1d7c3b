"""Which pipeline stage runs which part of the model, and which place follows which.

A place is a virtual stage, numbered in the order in which a micro-batch passes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from simulator.workload.stack import ScheduleName

NO_PLACE = -1


class Placement(StrEnum):
    """How the places of a pipeline lie on its stages."""

    LOOP = "loop"
    """Place p on stage p modulo pp (Megatron-LM's virtual stages)."""
    V = "v"
    """There and back: odd chunks run through the stages in reverse (ZB-V, DualPipeV)."""
    BIDIRECTIONAL = "bidirectional"
    """As V, but cut at the turning point: the way back holds the same parts of the model once more
    and has micro-batches of its own (DualPipe)."""


def placement_of(name: ScheduleName, of_file: Placement | None = None) -> Placement:
    """Return how a schedule places chunks on stages; `of_file` says it where a file lists it."""
    match name:
        case ScheduleName.ZERO_BUBBLE_V | ScheduleName.DUALPIPE_V:
            return Placement.V
        case ScheduleName.DUALPIPE:
            return Placement.BIDIRECTIONAL
        case ScheduleName.CSV:
            return of_file or Placement.LOOP
        case _:
            return Placement.LOOP


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineShape:
    """The places of a pipeline of `pp` stages with `vpp` chunks each.

    >>> shape = PipelineShape(pp=2, vpp=2, placement=Placement.V)
    >>> [shape.stage(place) for place in range(shape.places)]
    [0, 1, 1, 0]
    """

    pp: int
    vpp: int
    placement: Placement = Placement.LOOP

    @property
    def places(self) -> int:
        """Places in all: pp x vpp."""
        return self.pp * self.vpp

    @property
    def way(self) -> int:
        """Places that one micro-batch passes: the distinct parts of the model."""
        return self.pp if self.placement is Placement.BIDIRECTIONAL else self.places

    def place(self, stage: int, chunk: int) -> int:
        """Return the place of a stage's chunk."""
        returns = self.placement is not Placement.LOOP and chunk % 2
        return chunk * self.pp + (self.pp - 1 - stage if returns else stage)

    def stage(self, place: int) -> int:
        """Return the stage that runs a place."""
        chunk, inside = divmod(place, self.pp)
        returns = self.placement is not Placement.LOOP and chunk % 2
        return self.pp - 1 - inside if returns else inside

    def places_of(self, stage: int) -> tuple[int, ...]:
        """Return the places of a stage, chunk by chunk."""
        return tuple(self.place(stage, chunk) for chunk in range(self.vpp))

    def before(self, place: int) -> int:
        """Return the place from which a micro-batch comes, or `NO_PLACE` at the first one."""
        return place - 1 if place % self.way else NO_PLACE

    def behind(self, place: int) -> int:
        """Return the place to which a micro-batch goes on, or `NO_PLACE` at the last one."""
        return place + 1 if (place + 1) % self.way else NO_PLACE

    def sends_on(self, place: int) -> bool:
        """Whether what a forward pass at `place` yields goes to another stage."""
        behind = self.behind(place)
        return behind != NO_PLACE and self.stage(behind) != self.stage(place)

    def sends_back(self, place: int) -> bool:
        """Whether the gradient that a backward pass at `place` yields goes to another stage."""
        before = self.before(place)
        return before != NO_PLACE and self.stage(before) != self.stage(place)

    def micro_batches(self, place: int, count: int) -> range:
        """Return which of `count` micro-batches pass a place: half of them each way in DualPipe."""
        if self.placement is not Placement.BIDIRECTIONAL:
            return range(count)
        return range(count // 2) if place < self.pp else range(count // 2, count)
