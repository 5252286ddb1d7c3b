"""What a validation returns: one record a row, one a group, and where the numbers come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """Whether a row was predicted."""

    PREDICTED = "predicted"
    SKIPPED = "skipped"


class Quantity(StrEnum):
    """What was measured."""

    STEP_TIME = "step_time"
    COLLECTIVE_TIME = "collective_time"
    GEMM_TIME = "gemm_time"
    ATTENTION_TIME = "attention_time"
    PEAK_MEMORY = "peak_memory"

    @property
    def unit(self) -> str:
        """The unit of `measured` and `predicted`."""
        return "B" if self is Quantity.PEAK_MEMORY else "s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A measured and a predicted number in the same unit."""

    measured: float
    predicted: float

    @property
    def signed_error(self) -> float:
        """Predicted over measured, minus 1."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which layout of which problem a row measured."""

    problem: tuple[str, ...]
    """Model, accelerators, global batch, sequence length, hardware."""
    layout: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    """One row: what was measured, what was predicted, or why it was not."""

    id: str
    status: Status
    quantity: Quantity
    reason: str = ""
    """Why a row was skipped."""
    measured: float | None = None
    predicted: float | None = None
    low: float | None = None
    """Lower end of the 80 % interval."""
    high: float | None = None
    peak_memory: float | None = None
    """Predicted bytes of the fullest rank."""
    feasible: bool | None = None
    """Whether they fit in the device."""
    assumed: tuple[str, ...] = ()
    """What the row does not say and was assumed."""
    labels: Mapping[str, str] | None = None
    """What the row is grouped by."""
    source: str = ""
    choice: Choice | None = None
    memory: Pair | None = None
    """Bytes that were reported, beside what is predicted in the same convention."""
    ran: bool | None = None
    """False where the row says that the run ran out of memory or crashed."""

    @property
    def pair(self) -> Pair | None:
        """Both numbers, where both are known."""
        if self.measured is None or self.predicted is None:
            return None
        return Pair(measured=self.measured, predicted=self.predicted)

    @property
    def signed_error(self) -> float | None:
        """Predicted over measured, minus 1, where both are known."""
        return self.pair.signed_error if self.pair else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Errors of some rows; all are fractions, |predicted / measured - 1| unless signed."""

    count: int
    median: float
    mean: float
    p90: float
    worst: float
    """The signed error of the row with the largest error."""
    bias: float
    """The median of the signed errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """How much slower the layout that the forecast would choose is than the best measured one."""

    problems: int
    """Problems of which at least three layouts were measured."""
    top1_mean: float
    top1_worst: float
    top5_mean: float
    top5_worst: float
    calm: int
    """Problems of which at most half of the layouts were measured more than twice slower."""
    top1_median: float | None
    """Over the calm problems; None where there is none."""
    top5_median: float | None
    rank_correlation: float | None
    """Median over the problems of Spearman's coefficient between their layouts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasibility:
    """Rows by whether they ran and whether the forecast says that they fit in memory."""

    ran_fits: int
    ran_does_not_fit: int
    failed_fits: int
    failed_does_not_fit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The errors of the rows of one group."""

    by: Mapping[str, str]
    """What its rows have in common; empty for all rows."""
    quantity: Quantity
    rows: int
    skipped: int
    statistics: Statistics | None
    """None where no row has both a measurement and a prediction."""
    slow: int
    """Rows that were measured more than twice slower than predicted."""
    without_slow: Statistics | None
    rank_correlation: float | None
    """Spearman's coefficient between measured and predicted."""
    regret: Regret | None = None
    feasibility: Feasibility | None = None

    @property
    def name(self) -> str:
        """One line for tables."""
        return ", ".join(f"{value}" for value in self.by.values()) or "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """A table of measurements beside their predictions."""

    rows: tuple[RowResult, ...]
    groups: tuple[Group, ...]
    provenance: Mapping[str, object]
