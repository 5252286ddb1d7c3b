"""Sweeps of a small shipped scenario, and a forecast that costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.sweep.cases import Case, cases_of
from planner.sweep.row import Outcome, Row
from planner.sweep.sweep_file import Sweep, SweepFile, sweep_of
from simulator.files import parse_record

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SMALL = EXAMPLES / "llama3.1-8b-dgx-h100.toml"
BATCHES = [128, 256, 384, 512, 640, 768]


def sweep(
    over: Mapping[str, Sequence[Any]] | None = None,
    *,
    together: Sequence[Mapping[str, Sequence[Any]]] = (),
    what: str = "estimate",
    scenario: Path = SMALL,
) -> Sweep:
    """Return a sweep of a scenario file."""
    table = {
        "scenario": str(scenario),
        "what": what,
        "over": dict(over or {}),
        "together": list(together),
    }
    return sweep_of(parse_record(SweepFile, {"sweep": table}, "sweep.toml"), "sweep.toml", scenario)


def batches(values: Sequence[int] = BATCHES) -> tuple[Case, ...]:
    """Return cases that differ in their batch."""
    return cases_of(sweep({"job.global_batch_size": values}))


def batch_of(case: Case) -> int:
    """Return the batch of a case."""
    return int(case.values["job.global_batch_size"])


def echo(case: Case) -> tuple[int, Row]:
    """Return a row that has the batch of its case."""
    return case.number, Row(outcome=Outcome.OK, global_batch_size=batch_of(case))
