"""What a run plan says: plain records, and the same as dictionaries for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from planner.energy import NodePower
from planner.goodput.best import Interval, Spares
from planner.goodput.checkpoint import CheckpointSize, CheckpointTimes
from planner.goodput.data import DataPlan
from planner.goodput.replicate import Quantiles
from planner.goodput.shape import Cause, Level
from simulator.run_file import CheckpointMode


@dataclass(frozen=True, slots=True, kw_only=True)
class IdealRun:
    """The run if nothing failed and no checkpoint were written, at the forecast step time."""

    days: float
    accelerator_hours: float
    cost: float | None
    """None without a price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPlan:
    """When checkpoints are written, and what they take."""

    mode: CheckpointMode
    size: CheckpointSize
    times: CheckpointTimes
    stall: float
    """Seconds that training waits for one, what it takes besides writing included."""
    interval_steps: int
    interval: float
    """Seconds of training."""
    chosen: str
    """Who chose the interval: the scenario, or the search."""
    count: int
    """Checkpoints that the run keeps, or writes if it keeps all."""
    stored_bytes: float
    """Of those in storage at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePlan:
    """What fails, and what the run does then."""

    rates: tuple[str, ...]
    mtbf: Quantiles
    """Seconds between failures while the job runs on the whole cluster."""
    count: Quantiles
    """Failures of the run."""
    detection: float
    restart: float
    """Without reading the checkpoint, seconds."""
    repair: float
    """Mean, seconds."""
    spares: int
    levels: tuple[Level, ...]
    """Sizes on which the run goes on, the whole cluster first."""
    first_order_goodput: float
    """In closed form, nodes always there, at the mean failure rate; below 0 where it is no longer
    valid."""
    intervals: tuple[Interval, ...]
    """The best, and those of Young and Daly."""
    spare_choices: tuple[Spares, ...]
    best_spares: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyPlan:
    """Power and energy."""

    node: NodePower
    """Of one node, a mean where there are several kinds."""
    per_accelerator: float
    """Watts of an accelerator's share of a node while it trains."""
    machines: Quantiles
    """Joules of the run: accelerators and hosts, spares included."""
    site: Quantiles | None
    """With cooling; None without a PUE."""
    co2: Quantiles | None
    """Kilograms of CO2-equivalent; None without a grid intensity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Every simulated run, in the order of their numbers."""

    days: tuple[float, ...]
    goodput: tuple[float, ...]
    failures: tuple[int, ...]
    accelerator_hours: tuple[float, ...]
    """Of the cluster and its spares."""
    cost: tuple[float, ...] | None
    """None without a price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A whole run."""

    steps: int
    tokens: int
    step_time: float
    """Seconds."""
    world_size: int
    ideal: IdealRun
    days: Quantiles
    goodput: Quantiles
    """Useful step time over wall time."""
    accelerator_hours: Quantiles
    """Of the cluster and its spares."""
    cost: Quantiles | None
    currency: str
    shares: Mapping[Cause, float]
    """Of the mean wall time; they add up to 1."""
    checkpoint: CheckpointPlan | None
    """None where nothing is known of storage and nothing fails: no checkpoint is counted."""
    failures: FailurePlan | None
    energy: EnergyPlan
    data: DataPlan
    replications: int
    samples: Samples
    seed: int
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()


def run_plan_table(plan: RunPlan) -> dict[str, Any]:
    """Return a run plan as plain dictionaries and lists; times in seconds, sizes in bytes."""
    return {
        "steps": plan.steps,
        "tokens": plan.tokens,
        "step_time_s": plan.step_time,
        "accelerators": plan.world_size,
        "ideal": asdict(plan.ideal),
        "days": asdict(plan.days),
        "goodput": asdict(plan.goodput),
        "accelerator_hours": asdict(plan.accelerator_hours),
        "cost": _maybe(plan.cost),
        "currency": plan.currency,
        "wall_shares": {str(cause): share for cause, share in plan.shares.items()},
        "checkpoint": None if plan.checkpoint is None else _checkpoint(plan.checkpoint),
        "failures": None if plan.failures is None else _failures(plan.failures),
        "energy": _energy(plan.energy),
        "data": asdict(plan.data),
        "replications": plan.replications,
        "samples": _samples(plan.samples),
        "seed": plan.seed,
        "warnings": list(plan.warnings),
        "assumptions": list(plan.assumptions),
    }


def _samples(samples: Samples) -> dict[str, list[float] | None]:
    columns = asdict(samples)
    return {name: column and list(column) for name, column in columns.items()}


def _maybe(found: Quantiles | None) -> dict[str, float] | None:
    return None if found is None else asdict(found)


def _checkpoint(plan: CheckpointPlan) -> dict[str, Any]:
    return {
        "mode": str(plan.mode),
        "bytes": plan.size.total,
        "weights_bytes": plan.size.weights,
        "states_bytes": plan.size.states,
        "stall_s": plan.stall,
        "write_s": plan.times.whole,
        "read_s": plan.times.read,
        "interval_steps": plan.interval_steps,
        "interval_s": plan.interval,
        "interval_chosen_by": plan.chosen,
        "kept": plan.count,
        "stored_bytes": plan.stored_bytes,
    }


def _failures(plan: FailurePlan) -> dict[str, Any]:
    return {
        "rates": list(plan.rates),
        "mtbf_s": asdict(plan.mtbf),
        "count": asdict(plan.count),
        "detection_s": plan.detection,
        "restart_s": plan.restart,
        "repair_s": plan.repair,
        "spares": plan.spares,
        "levels": [asdict(level) for level in plan.levels],
        "first_order_goodput": plan.first_order_goodput,
        "intervals": [
            {
                "name": each.name,
                "steps": each.steps,
                "interval_s": each.seconds,
                "goodput": each.goodput,
            }
            for each in plan.intervals
        ],
        "spare_choices": [asdict(each) for each in plan.spare_choices],
        "best_spares": plan.best_spares,
    }


def _energy(plan: EnergyPlan) -> dict[str, Any]:
    return {
        "node_training_w": plan.node.training,
        "node_waiting_w": plan.node.waiting,
        "node_idle_w": plan.node.idle,
        "accelerator_share_w": plan.per_accelerator,
        "machines_j": asdict(plan.machines),
        "site_j": _maybe(plan.site),
        "co2_kg": _maybe(plan.co2),
    }
