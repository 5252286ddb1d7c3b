"""A forecast step as plain values: what `--json` writes and what tables and reports are drawn from.

Keys carry their unit: `_s` seconds, `_bytes` bytes, shares are fractions of 1.
"""

from __future__ import annotations

from dataclasses import asdict
from math import ceil
from typing import Any

from planner import Plan
from planner.goodput import RunPlan, run_plan_table
from planner.tables import plan_table
from reports.load_curve import load_record
from reports.result_kinds import ResultKind, result_of
from reports.step_detail import breakdown_record
from simulator.hardware.parts import Part, mean_peak, mean_price, peak_words
from simulator.parallel.layout import ParallelLayout
from simulator.results import MemoryUse, Provenance, StepResult
from simulator.scenario import Scenario
from simulator.units import SECONDS_PER_DAY, SECONDS_PER_HOUR
from simulator.workload.job import TrainingJob

HFU_CONVENTION = (
    "FLOP that the matrix units run (with recomputation, attention under its mask) over the dense "
    "peak; long sequences with little recomputation bring it below MFU, which leaves the mask out"
)


def mfu_convention(job: TrainingJob) -> str:
    """Return what MFU counts for a job, for people."""
    passes = "forward, and backward without the weight gradients of frozen weights"
    if not job.freezes:
        passes = "3 x forward"
    return (
        f"model FLOP ({passes}; attention without its causal mask, recomputation not counted) over "
        "the dense peak"
    )


def _convention(scenario: Scenario) -> str:
    """Return what MFU counts for the job, and of a mixed cluster which peak it divides by."""
    convention, job = mfu_convention(scenario.file.job), scenario.file.job
    if not scenario.mixed:
        return convention
    return f"{convention} of all accelerators, {peak_words(scenario.parts, job.precision)}"


def step_record(scenario: Scenario, layout: ParallelLayout, result: StepResult) -> dict[str, Any]:
    """Return a forecast of `layout` as plain values; all numbers are finite."""
    return result_of(ResultKind.STEP, {**_asked(scenario), **_forecast(scenario, layout, result)})


def _forecast(scenario: Scenario, layout: ParallelLayout, result: StepResult) -> dict[str, Any]:
    return {
        "layout": layout_record(layout, scenario.file.job.global_batch_size),
        "method": "event simulation" if result.tasks else "closed-form estimate",
        "events": result.events,
        "tasks": result.tasks,
        "played_tasks": result.played_tasks,
        "step": _step(scenario, result),
        "run": _run(scenario, result),
        "breakdown": breakdown_record(result.breakdown),
        "network": network_record(result),
        "memory": {
            "capacity_bytes": result.memory_capacity,
            "stage_capacity_bytes": list(result.stage_capacity),
            "host_capacity_bytes": result.host_capacity,
            "fits": result.fits,
            "stages": [memory_record(use) for use in result.memory],
        },
        "provenance": provenance_record(result.provenance),
    }


def plan_record(scenario: Scenario, plan: Plan, run: RunPlan | None = None) -> dict[str, Any]:
    """Return a plan, and of its best layout the whole run, as plain values; all are finite."""
    peak = mean_peak(scenario.parts, scenario.file.job.precision)
    record = {
        **_asked(scenario),
        "dense_peak_flops_per_second": peak,
        "mfu_convention": _convention(scenario),
        **plan_table(plan),
        "whole_run": None if run is None else run_plan_table(run),
    }
    return result_of(ResultKind.PLAN, record)


def layout_record(layout: ParallelLayout, global_batch_size: int) -> dict[str, Any]:
    """Return a layout with its defaults filled in."""
    return {
        **layout.model_dump(mode="json"),
        "schedule": str(layout.effective_schedule),
        "micro_batches": layout.micro_batches(global_batch_size),
    }


def network_record(result: StepResult) -> dict[str, Any]:
    """Return the links that carried anything, busiest first, what costs most, and drawn steps.

    `load` is what a link carries over time, where that was recorded: `rates_bytes_per_second[i]`
    from `times_s[i]` to `times_s[i + 1]`, in equal intervals with their means where `merged`.
    """
    return {
        "links": [
            {
                "name": use.name,
                "alike": use.count,
                "capacity_bytes_per_second": use.capacity,
                "carried_bytes": use.carried,
                "utilisation": use.utilisation(result.step_time),
                "full_share": use.full,
                "load": None if use.load is None else load_record(use.load),
            }
            for use in result.links
        ],
        "causes": [{"what": cause.what, "seconds": cause.seconds} for cause in result.causes],
        "drawn_s": list(result.drawn),
        "played_replicas": result.played,
        "notes": _replica_notes(result),
    }


def _replica_notes(result: StepResult) -> list[str]:
    """Return in words which data-parallel replicas were played, where they differ."""
    if result.played is None:
        return []
    if result.played == 1:
        return ["all data-parallel replicas have the same slow stages; one was played for all"]
    return [
        f"data-parallel replicas differ: {result.played:,} kinds of them were played apart and "
        "wait for each other; times and the timeline are of the one that the others wait for"
    ]


def memory_record(use: MemoryUse) -> dict[str, Any]:
    """Return the memory of a stage's rank; all but stage, ranks and `moment` are bytes."""
    return {**asdict(use), "allocated": use.allocated, "reserved": use.reserved}


def provenance_record(provenance: Provenance) -> dict[str, Any]:
    """Return what a forecast was computed from."""
    return {
        **asdict(provenance),
        "constants": dict(provenance.constants),
        "warnings": list(provenance.warnings),
    }


def _asked(scenario: Scenario) -> dict[str, Any]:
    """Return what was asked for: the same keys in every record."""
    return {
        "title": scenario.title,
        "scenario": scenario.where,
        "model": {
            "name": scenario.model.spec.name,
            "parameters": scenario.model.spec.parameters,
            "notes": list(scenario.model.notes),
        },
        "cluster": {
            "profile": " + ".join(part.profile.name for part in scenario.parts),
            "accelerator": " + ".join(p.profile.accelerator.name for p in scenario.parts),
            "nodes": sum(part.nodes for part in scenario.parts),
            "accelerators": scenario.world_size,
            "parts": [_part(part) for part in scenario.parts],
        },
        "job": scenario.file.job.model_dump(mode="json"),
    }


def _part(part: Part) -> dict[str, Any]:
    """Return one part of the cluster."""
    return {
        "profile": part.profile.name,
        "accelerator": part.profile.accelerator.name,
        "nodes": part.nodes,
        "accelerators": part.accelerators,
    }


def _step(scenario: Scenario, result: StepResult) -> dict[str, Any]:
    return {
        "step_time_s": result.step_time,
        "low_s": result.low,
        "high_s": result.high,
        "interval": "80 %",
        "tokens": result.tokens,
        "tokens_per_second": result.tokens_per_second,
        "tokens_per_second_per_accelerator": result.tokens_per_second / result.world_size,
        "model_flops": result.model_flops,
        "hardware_flops": result.hardware_flops,
        "dense_peak_flops_per_second": result.peak_flops,
        "mfu": result.mfu,
        "mfu_convention": _convention(scenario),
        "hfu": result.hfu,
        "hfu_convention": HFU_CONVENTION,
        "exposed_communication_s": result.breakdown.exposed_communication,
        "bubble_s": result.breakdown.bubble,
    }


def _run(scenario: Scenario, result: StepResult) -> dict[str, Any] | None:
    """Return the whole run at this step time, without failures; None where no tokens are given."""
    tokens, price = scenario.file.job.tokens, mean_price(scenario.parts)
    if tokens is None:
        return None
    steps = ceil(tokens / result.tokens)
    seconds = steps * result.step_time
    hours = seconds / SECONDS_PER_HOUR * result.world_size
    rate = price.per_accelerator_hour
    return {
        "tokens": tokens,
        "steps": steps,
        "days": seconds / SECONDS_PER_DAY,
        "days_low": steps * result.low / SECONDS_PER_DAY,
        "days_high": steps * result.high / SECONDS_PER_DAY,
        "accelerator_hours": hours,
        "cost": None if rate is None else hours * rate,
        "currency": price.currency,
    }
