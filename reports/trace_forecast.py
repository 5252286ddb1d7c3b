"""What a forecast says of a step, from the trace or the result file that `simulate` wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from reports.result_files.loading import MAX_RESULT_BYTES, load_results
from reports.result_files.parts import StageSeconds
from reports.result_files.step import StepFile
from simulator.errors import InputError, Problem
from simulator.files import parse_record, read_text

_WRITE = "traincast simulate SCENARIO --trace OUT.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceForecast:
    """A forecast step of one stage."""

    path: str
    title: str
    stage: int
    step_time: float
    """Seconds."""
    seconds: Mapping[str, float]
    """By category; they add up to the step."""
    events: Sequence[Mapping[str, Any]]
    """Of the trace; empty where a result file was read."""


class _Said(BaseModel):
    """What a trace of ours says beside its events."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    title: str
    step_time_s: float
    busiest_stage: int
    breakdowns: tuple[StageSeconds, ...]


def read_forecast(path: Path, stage: int | None) -> TraceForecast:
    """Return the forecast in a file, of `stage` or of the busiest one.

    Raises:
        InputError: it is neither a trace nor a result of `traincast simulate`, or has no such
            stage.
    """
    data = _object(path)
    if "traceEvents" not in data:
        return _of_result(path, stage)
    other = data.get("otherData")
    if not isinstance(other, dict) or "breakdowns" not in other:
        rule = "must be a trace that traincast simulate wrote: it holds no breakdown of a forecast"
        raise InputError(Problem(where=str(path), key="otherData", rule=rule, fix=_WRITE))
    said, events = parse_record(_Said, other, str(path)), data["traceEvents"]
    if not isinstance(events, list) or not all(isinstance(each, dict) for each in events):
        rule = "must be a list of events"
        raise InputError(Problem(where=str(path), key="traceEvents", rule=rule, fix=_WRITE))
    chosen = _chosen(said.breakdowns, said.busiest_stage if stage is None else stage, path)
    return TraceForecast(
        path=str(path),
        title=said.title,
        stage=chosen.stage,
        step_time=said.step_time_s,
        seconds=chosen.seconds,
        events=events,
    )


def _object(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(read_text(path, MAX_RESULT_BYTES))
    except (ValueError, RecursionError) as error:
        rule = f"is not valid JSON: {error}"
        raise InputError(Problem(where=str(path), rule=rule, fix=_WRITE)) from error
    if not isinstance(data, dict):
        rule = "must be a trace or a result of traincast simulate"
        found = type(data).__name__
        raise InputError(Problem(where=str(path), rule=rule, found=found, fix=_WRITE))
    return data


def _of_result(path: Path, stage: int | None) -> TraceForecast:
    result = load_results([path])[0].result
    if not isinstance(result, StepFile):
        rule = "must be the forecast of a step"
        fix = "traincast simulate SCENARIO --json OUT.json, or --trace OUT.json"
        raise InputError(
            Problem(where=str(path), key="kind", found=result.kind.value, rule=rule, fix=fix)
        )
    breakdowns = result.breakdowns or (result.breakdown,)
    chosen = _chosen(breakdowns, result.breakdown.stage if stage is None else stage, path)
    return TraceForecast(
        path=str(path),
        title=result.title,
        stage=chosen.stage,
        step_time=result.step.step_time_s,
        seconds=chosen.seconds,
        events=(),
    )


def _chosen(breakdowns: Sequence[StageSeconds], stage: int, path: Path) -> StageSeconds:
    found = next((each for each in breakdowns if each.stage == stage), None)
    if found is None:
        stages = ", ".join(str(each.stage) for each in breakdowns)
        rule = f"must be a stage of {path.name}"
        raise InputError(
            Problem(key="--stage", found=str(stage), rule=rule, fix=f"one of: {stages}")
        )
    return found
