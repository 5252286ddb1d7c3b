"""Forecasts of measured runs, as `traincast validate --json` writes them."""

from __future__ import annotations

from pydantic import Field

from reports.result_files.parts import Result, ResultRecord


class ValidatedRow(ResultRecord):
    """A measured run and its forecast; None where it was not forecast."""

    id: str
    status: str
    reason: str = ""
    quantity: str
    unit: str = ""
    measured: float | None = None
    predicted: float | None = None
    signed_error: float | None = None
    """Predicted / measured - 1."""
    low: float | None = None
    high: float | None = None
    peak_memory_bytes: float | None = None
    """Forecast."""
    measured_peak_memory_bytes: float | None = None
    """Where the row reports it."""
    feasible: bool | None = None
    assumed: tuple[str, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    """What the row is grouped by: model, profile, ..."""
    source: str = ""


class ErrorFacts(ResultRecord):
    """Statistics of |predicted / measured - 1|; worst and bias are signed."""

    count: int
    median: float
    mean: float
    p90: float
    worst: float
    bias: float


class GroupFacts(ResultRecord):
    """Rows that belong together."""

    name: str
    by: dict[str, str] = Field(default_factory=dict)
    quantity: str
    unit: str = ""
    rows: int
    predicted: int
    skipped: int
    compared: int
    statistics: ErrorFacts | None = None
    rank_correlation: float | None = None


class ValidationSource(ResultRecord):
    """What was validated with what."""

    traincast: str
    file: str
    file_sha256: str
    profiles: dict[str, str] = Field(default_factory=dict)
    stacks: tuple[str, ...] = ()
    fitted_on_this_file: tuple[str, ...] = ()


class ValidationFile(Result):
    """Every row of a file of measured runs; the first group is of all of them."""

    rows: tuple[ValidatedRow, ...]
    groups: tuple[GroupFacts, ...]
    provenance: ValidationSource
