"""A whole run, as `traincast goodput --json` writes it."""

from __future__ import annotations

from collections.abc import Sized

from pydantic import Field

from reports.result_files.parts import (
    Columns,
    Layout,
    ProvenanceFacts,
    Result,
    ResultRecord,
    Three,
)


class IdealFacts(ResultRecord):
    """The run if nothing failed and no checkpoint were written."""

    days: float
    accelerator_hours: float
    cost: float | None = None


class CheckpointFacts(ResultRecord):
    """When checkpoints are written, and what they take."""

    mode: str
    bytes: float
    stall_s: float
    write_s: float
    read_s: float
    interval_steps: int
    interval_s: float
    interval_chosen_by: str
    kept: int
    stored_bytes: float


class IntervalFacts(ResultRecord):
    """An interval between checkpoints, and what comes of it."""

    name: str
    steps: int
    interval_s: float
    goodput: float


class SpareFacts(ResultRecord):
    """A number of spare nodes, and what comes of it."""

    nodes: int
    days: float
    node_days: float


class FailureFacts(ResultRecord):
    """What fails, and what that costs."""

    rates: tuple[str, ...]
    mtbf_s: Three
    count: Three
    detection_s: float
    restart_s: float
    repair_s: float
    spares: int
    first_order_goodput: float
    intervals: tuple[IntervalFacts, ...]
    spare_choices: tuple[SpareFacts, ...] = ()
    best_spares: int


class EnergyFacts(ResultRecord):
    """Power and energy."""

    node_training_w: float
    accelerator_share_w: float
    machines_j: Three
    site_j: Three | None = None
    co2_kg: Three | None = None


class SampleColumns(Columns):
    """Every simulated run."""

    days: tuple[float, ...]
    goodput: tuple[float, ...]
    failures: tuple[int, ...]
    accelerator_hours: tuple[float, ...]
    """Of the cluster and its spares."""
    cost: tuple[float, ...] | None = None
    """None without a price."""

    def _columns(self) -> dict[str, Sized]:
        return {name: column for name, column in self if column is not None}


class RunPlanFacts(ResultRecord):
    """A whole run."""

    steps: int
    tokens: int
    step_time_s: float
    accelerators: int
    ideal: IdealFacts
    days: Three
    goodput: Three
    accelerator_hours: Three
    cost: Three | None = None
    currency: str
    wall_shares: dict[str, float]
    """Cause -> share of the wall time."""
    checkpoint: CheckpointFacts | None = None
    failures: FailureFacts | None = None
    energy: EnergyFacts | None = None
    replications: int
    seed: int
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    samples: SampleColumns | None = None


class GoodputFile(Result):
    """The plan of a whole run."""

    title: str
    scenario: str
    layout: Layout = Field(default_factory=dict)
    fits: bool
    run: RunPlanFacts
    provenance: ProvenanceFacts
