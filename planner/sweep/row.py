"""One row of a sweep: what became of one combination, in plain values."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from simulator.files import FileRecord


class Outcome(StrEnum):
    """What became of a combination."""

    OK = "ok"
    """Forecast, and it fits."""
    NO_FIT = "does not fit"
    """No legal layout fits in memory, or the given one does not; then its numbers are of a step
    that would run out of memory."""
    REFUSED = "refused"
    """A rule is broken: `reason` says which, and what would be legal."""
    DIED = "worker died"
    """Whatever worker took it was killed, as the system does where memory runs out. Not kept: a
    sweep that goes on tries again."""


class Row(FileRecord):
    """The forecast of one combination; quantities that there are none of are empty."""

    outcome: Outcome
    reason: str = ""
    """Why there is no forecast, or why it cannot run."""
    method: str = ""
    """`simulated` or `estimated`."""
    model: str = ""
    profile: str = ""
    stack: str = ""
    precision: str = ""
    accelerators: int = 0
    global_batch_size: int = 0
    seq_length: int = 0
    layout: str = ""
    """In words."""
    axes: dict[str, Any] = Field(default_factory=dict)
    """The layout in Megatron's names; in tables each is a column of its own."""
    step_time_s: float | None = None
    low_s: float | None = None
    """Lower end of the 80 % interval of the step time."""
    high_s: float | None = None
    tokens_per_s: float | None = None
    """Of all ranks."""
    tokens_per_s_per_accelerator: float | None = None
    mfu: float | None = None
    """Model FLOPs utilisation of the dense peak, attention without its causal mask."""
    peak_memory_bytes: float | None = None
    """Reserved by the fullest stage."""
    memory_capacity_bytes: float | None = None
    """Of one accelerator."""
    exposed_communication_s: float | None = None
    """Of the busiest stage's step."""
    bubble_s: float | None = None
    """Of the busiest stage's step."""
    bottleneck: str = ""
    steps: int | None = None
    """For `job.tokens`, as the rest."""
    days: float | None = None
    """Without failures."""
    days_low: float | None = None
    days_high: float | None = None
    accelerator_hours: float | None = None
    cost: float | None = None
    """Empty where the profile has no price."""
    currency: str = ""
    run_days_p10: float | None = None
    """Of the whole run with failures and checkpoints, as `traincast goodput` simulates it, where
    the scenario has a `[run]` table; as the rest that begins with `run_`. Tenth percentile."""
    run_days_p50: float | None = None
    """Median."""
    run_days_p90: float | None = None
    """Ninetieth percentile."""
    run_goodput: float | None = None
    """Useful step time over wall time, median, as the rest."""
    run_accelerator_hours: float | None = None
    """Of the cluster and its spares."""
    run_cost: float | None = None
    """Empty where the profile has no price."""
    run_energy_kwh: float | None = None
    """With cooling, where the run table has a PUE."""
    run_co2_kg: float | None = None
    """CO2-equivalent; empty without a grid intensity."""
    warnings: tuple[str, ...] = ()
    traincast: str = ""
    """Version."""
    profile_sha256: str = ""

    @property
    def runs(self) -> bool:
        """Whether there is a forecast of a step that fits."""
        return self.outcome is Outcome.OK
