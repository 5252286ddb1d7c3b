"""A measured step beside its forecast, as `traincast trace compare --json` writes it."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from reports.result_files.parts import Result, ResultRecord


class ClassFacts(ResultRecord):
    """What one class of operators takes of a step: forecast, and measured on a rank."""

    name: str
    simulated_s: float | None
    """None where the forecast has no such class."""
    measured_s: float | None
    low_s: float | None = None
    high_s: float | None = None
    """Least and most over the measured steps."""
    simulated_busy_s: float | None = None
    measured_busy_s: float | None = None
    """In which it runs, hidden or not; the others are what nothing hides."""


class CollectiveFacts(ResultRecord):
    """All calls of one collective for one purpose in the measured step."""

    model_config = ConfigDict(populate_by_name=True)

    collective: str
    """As nccl-tests names it."""
    label: str = Field(alias="class")
    calls: int
    busy_s: float
    exposed_s: float
    """Part that nothing hides."""


class UnclassifiedWork(ResultRecord):
    """Seconds of a step in work of no known class."""

    name: str
    seconds: float


class TraceComparisonFile(Result):
    """A measured step beside its forecast."""

    title: str
    simulated: str
    """The file of the forecast."""
    measured: tuple[str, ...]
    """The traces of ranks."""
    step: str
    """Which step of the traces was taken."""
    steps: int
    """Steps in the traces."""
    simulated_step_s: float
    measured_step_s: float = Field(gt=0)
    classes: tuple[ClassFacts, ...]
    """The largest difference first."""
    stage: int | None = None
    """Of the forecast."""
    low_s: float | None = None
    high_s: float | None = None
    """Least and most time of the measured steps."""
    median_s: float | None = None
    p10_s: float | None = None
    p90_s: float | None = None
    simulated_low_s: float | None = None
    simulated_high_s: float | None = None
    """Of the forecast's 80 % interval."""
    stage_from: str = ""
    """Why the forecast is that of its stage."""
    collectives: tuple[CollectiveFacts, ...] = ()
    """Of the measured step, longest first."""
    unclassified: tuple[UnclassifiedWork, ...] = ()
    """Work whose name tells no class, longest first."""
    sentences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
