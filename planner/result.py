"""What a plan says, as plain records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.variants import OWN, Varied
from simulator.aims import LayoutChoice, Objective
from simulator.parallel.checks import Reason
from simulator.parallel.layout import ParallelLayout
from simulator.results import Breakdown, Category, Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """What joint draws of the uncertain constants say of a layout among those compared."""

    best: float
    """Share of the draws in which it is the best by the objective."""
    regret: float
    """Mean over the draws of its objective over that of the best, minus 1."""
    low: float
    """10th percentile of its step time, seconds."""
    high: float
    """90th percentile of its step time, seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLayout:
    """One layout of the answer with its forecast."""

    rank: int
    """1 is the best."""
    layout: ParallelLayout
    simulated: bool
    """Whether the event engine played it; else the forecast is the estimate without contention."""
    step_time: float
    """Seconds."""
    low: float
    """Lower end of the 80 % interval, seconds."""
    high: float
    """Upper end of the 80 % interval, seconds."""
    estimate: float
    """Step time without contention, seconds: what the search ranked by."""
    tokens_per_second: float
    """All ranks."""
    mfu: float
    """Model FLOPs utilisation of the dense peak, attention without its causal mask."""
    peak_memory: float
    """Reserved bytes of the fullest stage."""
    breakdown: Breakdown
    """Seconds of the busiest stage by category."""
    varied: Varied = OWN
    """What its job and cluster differ in from the scenario's."""
    accelerators: int = 0
    """Of its cluster."""
    days: float | None = None
    """For all of the job's tokens, without failures; None where it has none."""
    cost: float | None = None
    """Of the run in `Plan.currency`, or of a million tokens; None where there is no price."""
    energy: float = 0.0
    """Joules of the run, or of a million tokens: accelerators and hosts, cooling apart."""
    chance: Chance | None = None
    """None where the constants were not drawn, or the layout was not among those compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontLayout:
    """A layout that no other is as good as in both of two objectives, at its estimate."""

    layout: ParallelLayout
    varied: Varied
    values: tuple[float, float]
    """By the two objectives: seconds a step, days, money and joules as of a layout, bytes."""
    step_time: float
    """Estimated without contention, seconds."""
    accelerators: int
    peak_memory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """Every layout that no other is as good as in both of two objectives."""

    objectives: tuple[Objective, Objective]
    layouts: tuple[FrontLayout, ...]
    """By the first objective, best first."""
    left_open: int = 0
    """Layouts that could be on it, where the search was cut short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """How the uncertain constants were drawn, and by what they were taken to be off."""

    draws: int
    """Of the constants."""
    repeats: int
    """Draws of the layouts' own errors for each of those."""
    seed: int
    compared: int
    """Layouts."""
    sources: Mapping[str, float]
    """Source of error -> standard deviation of the log of its factor."""
    origins: Mapping[str, str]
    """Where each of them comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageMemory:
    """What one rank of a stage needs of the accelerator's memory."""

    stage: int
    peak: float
    """Reserved bytes."""
    over: float
    """Bytes above the limit; 0 where the stage fits."""
    largest: str
    """The largest part of it."""
    moment: str
    """When the peak is reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """A legal layout that does not fit, stage by stage."""

    layout: ParallelLayout
    peak_memory: float
    stages: tuple[StageMemory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Something that was tried by itself where nothing fits."""

    what: str
    fits: bool
    """Whether anything fits then."""
    layout: ParallelLayout | None
    """A layout that does, or the one that needs least; None where none is legal."""
    peak_memory: float | None
    """Its reserved bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """How many layouts each part of the search saw."""

    considered: int
    """Combinations of the search table: legal ones and those that break a rule."""
    legal: int
    fitting: int
    """Legal ones within the memory limit; every one of them is bounded."""
    estimated: int
    """Those whose step time had to be computed exactly."""
    simulated: int
    """Those played by the event engine: the best, and all that could have been it."""
    gap: float | None = None
    """Where the search was cut short: part of the best estimated value by which any other layout
    could be better at most; None where it went to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapBest:
    """The fitting layout of a cell with the least estimated step time."""

    layout: ParallelLayout
    step_time: float
    """Seconds, without contention."""
    low: float
    high: float
    """Ends of the 80 % interval, seconds."""
    peak_memory: float
    """Reserved bytes of the fullest stage."""
    least_open: float | None
    """Seconds that any other layout of the cell takes at least, where the search was cut short;
    None where this one is proved to be the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapCell:
    """All layouts of one tp and pp."""

    tp: int
    pp: int
    considered: int
    best: MapBest | None
    """None where no layout is legal and fits."""
    reasons: Mapping[Reason, int]
    """Why layouts of the cell are refused, and how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTotals:
    """The whole run on the best layout, at its step time and without failures."""

    steps: int
    days: float
    days_low: float
    days_high: float
    accelerator_hours: float
    cost: float | None
    """None where the profile has no price."""
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer to a scenario: its fastest layouts, and how they were found."""

    title: str
    world_size: int
    layouts: tuple[PlannedLayout, ...]
    """Best first; empty where nothing is legal or nothing fits."""
    searched: Searched
    rejected: Mapping[Reason, int]
    """Layouts refused under each reason (see `planner.space.Space`)."""
    examples: Mapping[Reason, str]
    """For each rule that was broken one case, with its legal alternatives."""
    memory_limit: float
    """Bytes that a layout may reserve on one accelerator."""
    memory_capacity: float
    """Bytes of one accelerator."""
    nearest: tuple[NearMiss, ...] = ()
    """Where nothing fits: the layouts that come closest."""
    hints: tuple[str, ...] = ()
    """Where nothing fits: what the search table leaves out that would need less memory."""
    remedies: tuple[Remedy, ...] = ()
    """Where nothing fits: the hints and changes of the cluster, each tried by itself."""
    bottleneck: str = ""
    """What most of the best layout's step goes into."""
    runner_up: Mapping[Category, float] | None = None
    """Seconds that the second layout spends more than the best, by category."""
    runner_up_lost: str = ""
    """The same in words."""
    run: RunTotals | None = None
    """None where the job has no tokens, or there is no layout."""
    objective: Objective = Objective.STEP_TIME
    """What the best layout has least of."""
    choice: LayoutChoice = LayoutChoice.CENTRE
    """How the first was chosen among the best."""
    reason: str = ""
    """Why the first layout is the first, in words."""
    currency: str = ""
    """Of costs."""
    beyond: str = ""
    """In words, where layouts fit and none keeps to `search.max_days` or `search.max_cost`."""
    front: Front | None = None
    """None where the search table asks for none."""
    drawn: Drawn | None = None
    """None where the constants were not drawn."""
    cells: tuple[MapCell, ...] | None = None
    """The best layout of each tp and pp of the first layout's job and cluster, by the estimate;
    None where it was not asked for."""
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    provenance: Provenance

    @property
    def found(self) -> bool:
        """Whether any layout fits."""
        return bool(self.layouts)
