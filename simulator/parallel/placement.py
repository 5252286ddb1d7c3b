"""Which pipeline stage runs which part of the model, and which place follows which.

A place is a virtual stage, numbered in the order in which a micro-batch passes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache

from simulator.workload.stack_choices import ScheduleName

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


@dataclass(frozen=True, kw_only=True)
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

    @cached_property
    def way(self) -> int:
        """Places that one micro-batch passes: the distinct parts of the model."""
        return self.pp if self.placement is Placement.BIDIRECTIONAL else self.places

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """The stage that runs each place."""
        pp, folds = self.pp, self.placement is not Placement.LOOP
        way = (divmod(place, pp) for place in range(self.places))
        return tuple(pp - 1 - at if folds and chunk % 2 else at for chunk, at in way)

    @cached_property
    def sending_on(self) -> tuple[bool, ...]:
        """Whether what a forward pass at each place yields goes to another stage."""
        return tuple(map(self._leaves, range(self.places), map(self.behind, range(self.places))))

    @cached_property
    def sending_back(self) -> tuple[bool, ...]:
        """Whether the gradient that a backward pass at each place yields goes to another stage."""
        return tuple(map(self._leaves, range(self.places), map(self.before, range(self.places))))

    @cached_property
    def _places_of(self) -> tuple[tuple[int, ...], ...]:
        chunks = range(self.vpp)
        return tuple(tuple(self.place(s, c) for c in chunks) for s in range(self.pp))

    def _leaves(self, place: int, other: int) -> bool:
        return other != NO_PLACE and self.stages[other] != self.stages[place]

    def place(self, stage: int, chunk: int) -> int:
        """Return the place of a stage's chunk."""
        returns = self.placement is not Placement.LOOP and chunk % 2
        return chunk * self.pp + (self.pp - 1 - stage if returns else stage)

    def stage(self, place: int) -> int:
        """Return the stage that runs a place."""
        return self.stages[place]

    def places_of(self, stage: int) -> tuple[int, ...]:
        """Return the places of a stage, chunk by chunk."""
        return self._places_of[stage]

    def before(self, place: int) -> int:
        """Return the place from which a micro-batch comes, or `NO_PLACE` at the first one."""
        return place - 1 if place % self.way else NO_PLACE

    def behind(self, place: int) -> int:
        """Return the place to which a micro-batch goes on, or `NO_PLACE` at the last one."""
        return place + 1 if (place + 1) % self.way else NO_PLACE

    def micro_batches(self, place: int, count: int) -> range:
        """Return which of `count` micro-batches pass a place: half of them each way in DualPipe."""
        if self.placement is not Placement.BIDIRECTIONAL:
            return range(count)
        return range(count // 2) if place < self.pp else range(count // 2, count)


@lru_cache(maxsize=1024)
def pipeline_of(pp: int, vpp: int, placement: Placement) -> PipelineShape:
    """Return the shape of a pipeline; equal ones are one object, which lists its places once."""
    return PipelineShape(pp=pp, vpp=vpp, placement=placement)
