"""What a plan says: plain records, and the same as JSON and as rows of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from simulator.parallel.checks import Reason
from simulator.parallel.layout import ParallelLayout
from simulator.results import Breakdown, Category, Provenance

_INDENT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLayout:
    """One layout of the answer with its forecast."""

    rank: int
    """1 is the fastest."""
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
    bottleneck: str = ""
    """What most of the best layout's step goes into."""
    runner_up: Mapping[Category, float] | None = None
    """Seconds that the second layout spends more than the best, by category."""
    runner_up_lost: str = ""
    """The same in words."""
    run: RunTotals | None = None
    """None where the job has no tokens, or there is no layout."""
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    provenance: Provenance

    @property
    def found(self) -> bool:
        """Whether any layout fits."""
        return bool(self.layouts)


def to_json(plan: Plan) -> str:
    """Return a plan as JSON with finite numbers only; sizes in bytes, times in seconds."""
    return json.dumps(plan_table(plan), indent=_INDENT, allow_nan=False)


def plan_table(plan: Plan) -> dict[str, Any]:
    """Return what `to_json` writes, as plain dictionaries and lists."""
    return {
        "title": plan.title,
        "world_size": plan.world_size,
        "layouts": [_layout_entry(entry) for entry in plan.layouts],
        "searched": asdict(plan.searched),
        "rejected": {reason.value: count for reason, count in plan.rejected.items()},
        "examples": {reason.value: text for reason, text in plan.examples.items()},
        "memory_limit_bytes": plan.memory_limit,
        "memory_capacity_bytes": plan.memory_capacity,
        "nearest": [_near_entry(miss) for miss in plan.nearest],
        "hints": list(plan.hints),
        "bottleneck": plan.bottleneck,
        "runner_up_extra_s": None if plan.runner_up is None else _by_name(plan.runner_up),
        "runner_up_lost": plan.runner_up_lost,
        "run": None if plan.run is None else asdict(plan.run),
        "warnings": list(plan.warnings),
        "assumptions": list(plan.assumptions),
        "provenance": {**asdict(plan.provenance), "warnings": list(plan.provenance.warnings)},
    }


def to_rows(plan: Plan) -> list[dict[str, Any]]:
    """Return one flat row a layout, best first, for a CSV file or a data frame.

    Fields that no layout sets have no column; one that only others set is empty.
    """
    rows = []
    for entry in plan.layouts:
        nested = _layout_entry(entry)
        layout, seconds = nested.pop("layout"), nested.pop("breakdown_s")
        named = {f"{category}_s": value for category, value in seconds.items()}
        rows.append({"rank": nested.pop("rank"), **layout, **nested, **named})
    columns = dict.fromkeys(column for row in rows for column in row)
    return [{column: _cell(row.get(column, "")) for column in columns} for row in rows]


def _cell(value: Any) -> Any:
    """Return a value as one cell: lists in one word."""
    return "+".join(map(str, value)) if isinstance(value, list) else value


def layout_table(layout: ParallelLayout) -> dict[str, Any]:
    """Return a layout by Megatron's names; what it leaves to a default is filled in."""
    table = layout.model_dump(mode="json", exclude_none=True)
    experts = {"etp": layout.expert_tp} if layout.ep > 1 else {}
    return {**table, **experts, "schedule": layout.effective_schedule.value}


def _layout_entry(entry: PlannedLayout) -> dict[str, Any]:
    return {
        "rank": entry.rank,
        "layout": layout_table(entry.layout),
        "simulated": entry.simulated,
        "step_time_s": entry.step_time,
        "low": entry.low,
        "high": entry.high,
        "estimate_s": entry.estimate,
        "tokens_per_s": entry.tokens_per_second,
        "mfu": entry.mfu,
        "peak_memory_bytes": entry.peak_memory,
        "exposed_communication_s": entry.breakdown.exposed_communication,
        "bubble_s": entry.breakdown.bubble,
        "busiest_stage": entry.breakdown.stage,
        "breakdown_s": _by_name(entry.breakdown.seconds),
    }


def _near_entry(miss: NearMiss) -> dict[str, Any]:
    return {
        "layout": layout_table(miss.layout),
        "peak_memory_bytes": miss.peak_memory,
        "stages": [
            {
                "stage": stage.stage,
                "peak_memory_bytes": stage.peak,
                "over_bytes": stage.over,
                "largest": stage.largest,
                "moment": stage.moment,
            }
            for stage in miss.stages
        ],
    }


def _by_name(seconds: Mapping[Category, float]) -> dict[str, float]:
    return {category.value: value for category, value in seconds.items()}
