"""What changes would bring, as `traincast explain --json` writes it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from reports.result_files.parts import Layout, Result, ResultRecord
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


class ExplainFile(Result):
    """A plan, and what changes would bring."""

    plan: PlanFile
    what_if: tuple[WhatIfFacts, ...] = ()
    sensitivities: tuple[SensitivityFacts, ...] = ()
