"""What changes would bring, as `traincast explain --json` writes it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from reports.result_files.parts import Layout, Result, ResultRecord, Seconds
from reports.result_files.plan import PlanFile


class ChangedStep(ResultRecord):
    """A step under a change; where no layout is legal or fits, only the reason."""

    layout: Layout | None = None
    name: str = ""
    step_time_s: float | None = None
    speedup: float | None = None
    """Tokens/s over those of the best layout without the change."""
    accelerators: int | None = None
    peak_memory_bytes: float | None = None
    reason: str = ""


class WhatIfFacts(ResultRecord):
    """A change, with the same layout and with the best one for it."""

    name: str
    change: dict[str, Any] = Field(default_factory=dict)
    same_layout: ChangedStep
    best_layout: ChangedStep
    warnings: tuple[str, ...] = ()


class SensitivityFacts(ResultRecord):
    """The best layout's step with one source of error at either end of its 80 % interval."""

    source: str
    low_s: float
    """With the source at the end that makes the step shorter."""
    high_s: float
    origin: str = ""
    """Where the size of the error is from."""


class BestFacts(ResultRecord):
    """The best layout of all, or of a kind."""

    layout: Layout
    name: str = ""
    step_time_s: float


class ThresholdFacts(ResultRecord):
    """By how much one lever has to move for layouts of the kind to win."""

    name: str
    tried: float
    """The extreme factor."""
    factor: float | None
    """The least factor found at which they win; None: not by this alone."""
    loses_at: float | None
    """The largest factor below it at which they do not."""
    reason: str = ""


class WorthwhileFacts(ResultRecord):
    """The best layout of a kind against the best of all (`--layout-key`)."""

    wanted: dict[str, Any]
    """The kind."""
    best: BestFacts
    found: BestFacts | None
    """None where none is legal and fits."""
    reason: str
    extra_s: Seconds | None
    """Seconds that the kind takes more, by category."""
    thresholds: tuple[ThresholdFacts, ...] = ()


class ExplainFile(Result):
    """A plan, and what changes would bring."""

    plan: PlanFile
    what_if: tuple[WhatIfFacts, ...] = ()
    worthwhile: WorthwhileFacts | None = None
    """None where no kind of layouts was asked for."""
    sensitivities: tuple[SensitivityFacts, ...] = ()
    """Of the best layout; the widest first."""
