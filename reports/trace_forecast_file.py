"""Reading a forecast: the trace or the result file that `traincast simulate` wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from calibrate.import_kineto_file import trace_text
from calibrate.import_kineto_groups import Axes
from reports.result_files.loading import MAX_RESULT_BYTES, load_results
from reports.result_files.parts import StageRanks, StageSeconds, StageTotals
from reports.result_files.step import StepFile
from reports.trace_forecast import ForecastFile
from simulator.errors import InputError, Problem
from simulator.files import parse_record

_WRITE = "traincast simulate SCENARIO --trace OUT.json"
_ORDER = "traincast trace compare SIMULATED.json REAL..., the forecast first"
_REAL = ("deviceProperties", "distributedInfo", "baseTimeNanoseconds", "schemaVersion")
"""Keys of a profiler's trace, of which a forecast has none."""
_HEAD = 4096
"""Characters in which a profiler's trace says what it is."""


class _Axes(BaseModel):
    """The sizes of the axes of a layout, among whatever else a file says of it."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    tp: int = Field(ge=1)
    cp: int = Field(ge=1)
    dp: int = Field(ge=1)
    pp: int = Field(ge=1)
    ep: int = Field(ge=1)
    etp: int | None = Field(default=None, ge=1)
    shard_size: int | None = Field(default=None, ge=1)


class _Said(BaseModel):
    """What a trace of ours says beside its events."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    title: str
    step_time_s: float
    low_s: float | None = None
    high_s: float | None = None
    busiest_stage: int
    breakdowns: tuple[StageSeconds, ...]
    stage_totals: tuple[StageTotals, ...] = ()
    stage_ranks: tuple[StageRanks, ...] = ()
    layout: dict[str, Any] = Field(default_factory=dict)


def read_forecast(path: Path) -> ForecastFile:
    """Return the forecast in a file, plain or gzip.

    Raises:
        InputError: it is neither a trace nor a result of `traincast simulate`.
    """
    data = _object(path)
    if "traceEvents" not in data:
        return _of_result(path)
    other = data.get("otherData")
    if not isinstance(other, dict) or "breakdowns" not in other:
        raise InputError(_no_forecast(path, real=any(key in data for key in _REAL)))
    said, events = parse_record(_Said, other, str(path)), data["traceEvents"]
    if not isinstance(events, list) or not all(isinstance(each, dict) for each in events):
        rule = "must be a list of events"
        raise InputError(Problem(where=str(path), key="traceEvents", rule=rule, fix=_WRITE))
    return ForecastFile(
        path=str(path),
        name=path.name,
        title=said.title,
        step_time=said.step_time_s,
        low=said.low_s,
        high=said.high_s,
        busiest=said.busiest_stage,
        breakdowns=said.breakdowns,
        totals=said.stage_totals,
        ranks=said.stage_ranks,
        axes=_axes(said.layout, path),
        events=events,
    )


def _no_forecast(path: Path, *, real: bool) -> Problem:
    """Return what is wrong with a trace that is none of ours: perhaps it is the `real` one."""
    if real:
        rule = "must be the forecast: it is a profiler's trace of a real run"
        return Problem(where=str(path), key="SIMULATED", rule=rule, fix=_ORDER)
    rule = "must be a trace that traincast simulate wrote: it holds no breakdown of a forecast"
    return Problem(where=str(path), key="otherData", rule=rule, fix=_WRITE)


def _axes(layout: Mapping[str, Any], path: Path) -> Axes | None:
    return Axes(**parse_record(_Axes, layout, str(path)).model_dump()) if layout else None


def _object(path: Path) -> Mapping[str, Any]:
    try:
        with trace_text(path, MAX_RESULT_BYTES) as text:
            head = text.read(_HEAD)
            # A profiler's trace says what it is at its beginning, and may be too long to read on.
            if any(f'"{key}":' in head for key in _REAL):
                raise InputError(_no_forecast(path, real=True))
            data = json.loads(head + text.read(MAX_RESULT_BYTES + 1))
    except (ValueError, RecursionError) as error:
        rule = f"is not valid JSON: {error}"
        raise InputError(Problem(where=str(path), rule=rule, fix=_WRITE)) from error
    if not isinstance(data, dict):
        rule = "must be a trace or a result of traincast simulate"
        found = type(data).__name__
        raise InputError(Problem(where=str(path), rule=rule, found=found, fix=_WRITE))
    return data


def _of_result(path: Path) -> ForecastFile:
    result = load_results([path])[0].result
    if not isinstance(result, StepFile):
        rule = "must be the forecast of a step"
        fix = "traincast simulate SCENARIO --json OUT.json, or --trace OUT.json"
        raise InputError(
            Problem(where=str(path), key="kind", found=result.kind.value, rule=rule, fix=fix)
        )
    return ForecastFile(
        path=str(path),
        name=path.name,
        title=result.title,
        step_time=result.step.step_time_s,
        low=result.step.low_s,
        high=result.step.high_s,
        busiest=result.breakdown.stage,
        breakdowns=result.breakdowns or (result.breakdown,),
        totals=result.stage_totals,
        ranks=result.stage_ranks,
        axes=_axes(result.layout, path),
        events=(),
    )
