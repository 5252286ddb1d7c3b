"""A plan as plain tables: JSON, rows for CSV, a layout by Megatron's names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from planner.result import Front, MapCell, NearMiss, Plan, PlannedLayout, Remedy
from planner.variants import Varied
from simulator.parallel.layout import ParallelLayout
from simulator.results import Category

_INDENT = 2


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
        "remedies": [_remedy_entry(remedy) for remedy in plan.remedies],
        "bottleneck": plan.bottleneck,
        "runner_up_extra_s": None if plan.runner_up is None else _by_name(plan.runner_up),
        "runner_up_lost": plan.runner_up_lost,
        "run": None if plan.run is None else asdict(plan.run),
        "objective": plan.objective.value,
        "choice": plan.choice.value,
        "reason": plan.reason,
        "currency": plan.currency,
        "beyond": plan.beyond,
        "pareto": None if plan.front is None else _front_entry(plan.front),
        "drawn": None if plan.drawn is None else asdict(plan.drawn),
        "map": None if plan.cells is None else {"cells": [_cell_entry(c) for c in plan.cells]},
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
        varied, chance = nested.pop("varied"), nested.pop("chance") or {}
        drawn = {f"drawn_{key}": value for key, value in chance.items()}
        rows.append({"rank": nested.pop("rank"), **varied, **layout, **nested, **named, **drawn})
    columns = dict.fromkeys(column for row in rows for column in row)
    return [{column: _cell(row.get(column, "")) for column in columns} for row in rows]


def _cell(value: Any) -> Any:
    """Return a value as one cell: lists in one word, nothing as nothing."""
    if value is None:
        return ""
    return "+".join(map(str, value)) if isinstance(value, list) else value


def layout_table(layout: ParallelLayout) -> dict[str, Any]:
    """Return a layout by Megatron's names; what it leaves to a default is filled in."""
    table = layout.model_dump(mode="json", exclude_none=True)
    experts = {"etp": layout.expert_tp} if layout.ep > 1 else {}
    return {**table, **experts, "schedule": layout.effective_schedule.value}


def _cell_entry(cell: MapCell) -> dict[str, Any]:
    best = cell.best and {
        "layout": layout_table(cell.best.layout),
        "name": str(cell.best.layout),
        "step_time_s": cell.best.step_time,
        "low_s": cell.best.low,
        "high_s": cell.best.high,
        "peak_memory_bytes": cell.best.peak_memory,
        "least_open_s": cell.best.least_open,
    }
    return {
        "tp": cell.tp,
        "pp": cell.pp,
        "considered": cell.considered,
        "best": best,
        "reasons": {reason.value: count for reason, count in cell.reasons.items()},
    }


def _layout_entry(entry: PlannedLayout) -> dict[str, Any]:
    return {
        "rank": entry.rank,
        "layout": layout_table(entry.layout),
        "name": str(entry.layout),
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
        "varied": varied_table(entry.varied),
        "accelerators": entry.accelerators,
        "days": entry.days,
        "cost": entry.cost,
        "energy_j": entry.energy,
        "chance": None if entry.chance is None else asdict(entry.chance),
    }


def varied_table(varied: Varied) -> dict[str, Any]:
    """Return what tells a job and cluster from the scenario's; empty where nothing does."""
    return {key: value for key, value in asdict(varied).items() if value is not None}


def _front_entry(front: Front) -> dict[str, Any]:
    return {
        "objectives": [objective.value for objective in front.objectives],
        "layouts": [
            {
                "values": list(point.values),
                "layout": layout_table(point.layout),
                "name": str(point.layout),
                "varied": varied_table(point.varied),
                "step_time_s": point.step_time,
                "accelerators": point.accelerators,
                "peak_memory_bytes": point.peak_memory,
            }
            for point in front.layouts
        ],
        "left_open": front.left_open,
    }


def _remedy_entry(remedy: Remedy) -> dict[str, Any]:
    return {
        "what": remedy.what,
        "fits": remedy.fits,
        "layout": None if remedy.layout is None else layout_table(remedy.layout),
        "name": "" if remedy.layout is None else str(remedy.layout),
        "peak_memory_bytes": remedy.peak_memory,
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
