"""What a forecast says of a step, for the comparison with a trace of a real run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrate.import_kineto_groups import Axes
from reports.result_files.parts import StageRanks, StageSeconds, StageTotals
from simulator.errors import InputError, Problem
from simulator.results import Category

_TOLD_APART = (
    Category.TENSOR_COMM,
    Category.CONTEXT_COMM,
    Category.EXPERT_COMM,
    Category.PIPELINE_COMM,
    Category.DATA_COMM,
)
"""What a collective can be for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceForecast:
    """A forecast step of one stage."""

    path: str
    title: str
    stage: int
    step_time: float
    """Seconds."""
    low: float | None
    high: float | None
    """Of its 80 % interval; None where the file does not say it."""
    seconds: Mapping[str, float]
    """By category; they add up to the step."""
    busy: Mapping[str, float]
    """By kind of communication, hidden or not; empty where the file does not say it."""
    events: Sequence[Mapping[str, Any]]
    """Of the trace; empty where a result file was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastFile:
    """A forecast step of every stage, from the file that `simulate` wrote."""

    path: str
    name: str
    """Of the file, without its folder."""
    title: str
    step_time: float
    """Seconds."""
    low: float | None
    high: float | None
    busiest: int
    """Stage."""
    breakdowns: Sequence[StageSeconds]
    totals: Sequence[StageTotals]
    ranks: Sequence[StageRanks]
    axes: Axes | None
    """None where the file does not say its layout."""
    events: Sequence[Mapping[str, Any]]

    @property
    def only(self) -> Category | None:
        """The one purpose that its collectives have; None where they have several, or none."""
        sent = {kind for each in self.totals for kind, value in each.communication.items() if value}
        found = [kind for kind in _TOLD_APART if kind.value in sent]
        return found[0] if len(found) == 1 else None

    def stage_of(self, rank: int | None, world_size: int | None) -> int | None:
        """Return the stage of a rank of a run; None where that is not known.

        A run of another number of ranks has another layout.
        """
        world = self.axes.world_size if self.axes is not None else None
        if rank is None or world is None or world_size not in (None, world):
            return None
        found = (each.stage for each in self.ranks if each.first <= rank <= each.last)
        return next(found, None)

    def of_stage(self, stage: int) -> TraceForecast:
        """Return the forecast of a stage; what it recomputes counts as what it is.

        Raises:
            InputError: it has no such stage.
        """
        chosen = next((each for each in self.breakdowns if each.stage == stage), None)
        if chosen is None:
            stages = ", ".join(str(each.stage) for each in self.breakdowns)
            rule = f"must be a stage of {self.name}"
            fix = f"one of: {stages}"
            raise InputError(Problem(key="--stage", found=str(stage), rule=rule, fix=fix))
        totals = next((each for each in self.totals if each.stage == stage), None)
        return TraceForecast(
            path=self.path,
            title=self.title,
            stage=stage,
            step_time=self.step_time,
            low=self.low,
            high=self.high,
            seconds=chosen.seconds if totals is None else _told_apart(chosen.seconds, totals),
            busy={} if totals is None else totals.communication,
            events=self.events,
        )


def _told_apart(seconds: Mapping[str, float], totals: StageTotals) -> Mapping[str, float]:
    """Return the seconds of a stage with those of recomputation given to what is recomputed.

    A stage that is slower than its operators by themselves recomputes slower in proportion.
    """
    again, parts = seconds.get(Category.RECOMPUTE, 0.0), totals.recomputed
    total = sum(parts.values())
    if not again or not total:
        return seconds
    found = {kind: value for kind, value in seconds.items() if kind != Category.RECOMPUTE}
    for kind, value in parts.items():
        found[kind] = found.get(kind, 0.0) + value * again / total
    return found
