"""A plan, as `traincast plan --json` writes it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from reports.result_files.goodput import RunPlanFacts
from reports.result_files.parts import (
    Asked,
    Layout,
    ResultRecord,
    RunFacts,
    Seconds,
)


class ChanceFacts(ResultRecord):
    """What joint draws of the uncertain constants say of a layout among those compared."""

    best: float
    """Share of the draws in which it is the best."""
    regret: float
    """Mean of its objective over that of the best, minus 1."""
    low: float
    high: float
    """10th and 90th percentile of its step time, seconds."""


def full_name(name: str, layout: Layout) -> str:
    """Return a layout in words with the layers of each chunk, where they are not even.

    >>> full_name("tp8 pp2", {"layers_per_stage": [3, 1]})
    'tp8 pp2, layers 3 1'
    """
    layers = layout.get("layers_per_stage")
    return f"{name}, layers {' '.join(map(str, layers))}" if layers else name


class PlannedFacts(ResultRecord):
    """One layout of the answer."""

    rank: int
    layout: Layout
    name: str = ""
    """The layout in words."""
    simulated: bool
    step_time_s: float
    low: float
    high: float
    """Ends of the 80 % interval, seconds."""
    estimate_s: float
    tokens_per_s: float
    mfu: float
    peak_memory_bytes: float
    exposed_communication_s: float
    bubble_s: float
    busiest_stage: int
    breakdown_s: Seconds
    varied: dict[str, Any] = Field(default_factory=dict)
    """What its job and cluster differ in from the scenario's."""
    accelerators: int
    days: float | None = None
    cost: float | None = None
    energy_j: float | None = None
    chance: ChanceFacts | None = None

    @property
    def full_name(self) -> str:
        """The layout in words, uneven layers included."""
        return full_name(self.name, self.layout)


class SearchedFacts(ResultRecord):
    """How many layouts each part of the search saw."""

    considered: int
    legal: int
    fitting: int
    estimated: int
    simulated: int
    gap: float | None = None
    """Where the search was cut short: share by which any other layout could be better at most."""


class StageNeed(ResultRecord):
    """What a stage of a layout needs."""

    stage: int
    peak: float
    over: float
    """Bytes above the limit."""
    largest: str
    moment: str


class NearMissFacts(ResultRecord):
    """A legal layout that does not fit."""

    layout: Layout
    peak_memory_bytes: float


class RemedyFacts(ResultRecord):
    """Something that was tried by itself where nothing fits."""

    what: str
    fits: bool
    peak_memory_bytes: float | None = None


class FrontPoint(ResultRecord):
    """A layout that no other is as good as in both of two objectives."""

    values: tuple[float, float]
    layout: Layout
    name: str = ""
    step_time_s: float
    accelerators: int
    peak_memory_bytes: float


class FrontFacts(ResultRecord):
    """The Pareto front of two objectives."""

    objectives: tuple[str, str]
    layouts: tuple[FrontPoint, ...]


class DrawnFacts(ResultRecord):
    """How the uncertain constants were drawn."""

    draws: int
    seed: int
    repeats: int = 1
    """Draws of the layouts' own errors for each of the constants'."""
    compared: int
    sources: dict[str, float]
    """Source of error -> standard deviation of the log of its factor."""
    origins: dict[str, str] = Field(default_factory=dict)


class MapBest(ResultRecord):
    """The best fitting layout of a cell, by its estimate."""

    layout: Layout
    name: str
    step_time_s: float
    low_s: float
    high_s: float
    peak_memory_bytes: float
    least_open_s: float | None = None
    """Seconds that any other layout takes at least, where the search was cut short."""


class MapCell(ResultRecord):
    """All layouts of one tp and pp."""

    tp: int
    pp: int
    considered: int
    best: MapBest | None
    """None where no layout is legal and fits."""
    reasons: dict[str, int] = Field(default_factory=dict)
    """Why layouts of the cell are refused -> how many."""


class LayoutMapFacts(ResultRecord):
    """The best layout of every tp x pp of the space."""

    cells: tuple[MapCell, ...]


class PlanFile(Asked):
    """The answer to a scenario."""

    world_size: int
    dense_peak_flops_per_second: float
    mfu_convention: str
    layouts: tuple[PlannedFacts, ...]
    searched: SearchedFacts
    rejected: dict[str, int]
    examples: dict[str, str] = Field(default_factory=dict)
    memory_limit_bytes: float
    memory_capacity_bytes: float
    nearest: tuple[NearMissFacts, ...] = ()
    hints: tuple[str, ...] = ()
    remedies: tuple[RemedyFacts, ...] = ()
    bottleneck: str = ""
    runner_up_extra_s: Seconds | None = None
    runner_up_lost: str = ""
    run: RunFacts | None = None
    objective: str = "step_time"
    choice: str = "centre"
    reason: str = ""
    currency: str = ""
    beyond: str = ""
    pareto: FrontFacts | None = None
    drawn: DrawnFacts | None = None
    whole_run: RunPlanFacts | None = None
    map: LayoutMapFacts | None = None
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
