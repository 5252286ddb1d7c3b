"""What the passes of a pipeline run at each of its places, and which stages are alike."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from simulator.parallel.placement import PipelineShape
from simulator.parallel.segments import Section


class StageRun(NamedTuple):
    """Neighbouring stages that run the same sections."""

    first: int
    last: int
    sections: tuple[int, ...]
    """Of each chunk of one of the stages: which of `Sections.distinct`."""

    @property
    def alike(self) -> bool:
        """Whether the chunks of a stage run the same section."""
        return len(set(self.sections)) == 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Sections:
    """The sections of a pipeline's places; equal ones are one object.

    Layouts share them: what is computed of them alone is computed once for all.
    """

    shape: PipelineShape
    of_places: tuple[Section, ...]

    @cached_property
    def distinct(self) -> tuple[Section, ...]:
        """The different ones, in the order of the places."""
        return tuple({id(section): section for section in self.of_places}.values())

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Which of `distinct` stands at each place."""
        numbers = {id(section): number for number, section in enumerate(self.distinct)}
        return tuple(numbers[id(section)] for section in self.of_places)

    @cached_property
    def runs(self) -> tuple[StageRun, ...]:
        """Runs of neighbouring stages with equal sections."""
        runs: list[StageRun] = []
        for stage in range(self.shape.pp):
            here = tuple(self.numbers[place] for place in self.shape.places_of(stage))
            first = runs.pop().first if runs and runs[-1].sections == here else stage
            runs.append(StageRun(first, stage, here))
        return tuple(runs)
