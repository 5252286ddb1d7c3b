"""Step rows: each is read as a model, a job, a stack, a machine and a layout, and forecast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.jobs import job_of
from calibrate.validation.layouts import layout_of, with_stages
from calibrate.validation.machines import Machines
from calibrate.validation.records import Choice, Pair, Quantity, RowResult, Status
from calibrate.validation.reported import (
    ReportedMemory,
    failed,
    measured_memory,
    measured_step_time,
    refuse_suspect,
    step_time_of_flops,
)
from calibrate.validation.shapes import model_of
from calibrate.validation.software import Stacks
from simulator.api import Forecaster
from simulator.errors import InputError
from simulator.hardware.profile import Profile
from simulator.parallel.checks import check_layout
from simulator.parallel.layout import ParallelLayout
from simulator.results import StepResult
from simulator.scenario import SearchFile
from simulator.workload.job import TrainingJob
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack

Part = TypeVar("Part")

MEMORY_FRACTION = SearchFile().memory_fraction
"""Share of the device that a run may reserve to be forecast to fit: what `plan` allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCase:
    """A step row as the simulator sees it."""

    model: ModelSpec
    job: TrainingJob
    stack: Stack
    profile: Profile
    layout: ParallelLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadRow:
    """A row that can be forecast."""

    name: str
    row: Row
    case: StepCase
    measured: float | None

    @property
    def shape(self) -> tuple[object, ...]:
        """Rows that agree in it have the same task graph, which is worth building once."""
        layout, job = self.case.layout, self.case.job
        micro_batches = layout.micro_batches(job.global_batch_size)
        sharding = (layout.zero_stage, layout.dp > 1, layout.recompute)
        return layout.pp, layout.vpp, micro_batches, *sharding, self.case.stack.name


class StepForecasts:
    """Forecasts step rows; rows of the same model, job, stack and machine share their costs."""

    def __init__(self, profile: str | None, stack: str | None) -> None:
        self._machines = Machines(profile)
        self._stacks = Stacks(stack)
        self._fitted = self._stacks.used_to_fit
        self._forecasters: dict[tuple[object, ...], Forecaster] = {}
        self.stacks: set[str] = set()

    @property
    def profiles(self) -> Sequence[Profile]:
        """The machines that were used."""
        return self._machines.used

    def predict(self, rows: Sequence[tuple[str, Row]]) -> list[RowResult]:
        """Return the forecast of each row, or why there is none, in order."""
        read = [self._read(name, row) for name, row in rows]
        results = {i: row for i, row in enumerate(read) if isinstance(row, RowResult)}
        ready = [(i, row) for i, row in enumerate(read) if isinstance(row, _ReadRow)]
        for index, row in sorted(ready, key=lambda each: each[1].shape):
            results[index] = self._forecast(row)
        return [results[index] for index in range(len(read))]

    def _read(self, name: str, row: Row) -> _ReadRow | RowResult:
        measured = None
        try:
            measured = measured_step_time(row)
            refuse_suspect(row)
            if name in self._fitted:
                raise SkippedRowError(f"used to fit stack {self._fitted[name]}")
            case = self.read(row)
            measured = measured or step_time_of_flops(row, case.model)
            return _ReadRow(name=name, row=row, case=case, measured=measured)
        except (SkippedRowError, InputError) as error:
            return _skipped(name, row, measured, error)

    def _forecast(self, read: _ReadRow) -> RowResult:
        case = read.case
        try:
            result = self._forecaster(case).estimate(case.layout)
            reported = None if failed(read.row) else measured_memory(read.row)
        except (SkippedRowError, InputError) as error:
            return _skipped(read.name, read.row, read.measured, error)
        self.stacks.add(case.stack.name)
        return _result(read, result, reported)

    def read(self, row: Row) -> StepCase:
        """Return a row as the simulator sees it.

        Raises:
            SkippedRowError: with all that stands in the way.
            InputError: the layout is not legal.
        """
        reasons: list[str] = []
        gpus = _part(reasons, row.integer, "gpus")
        model = _part(reasons, model_of, row)
        stack = _part(reasons, self._stacks.of_step, row)
        profile = _part(reasons, self._machines.of_step, row, gpus)
        layout = _part(reasons, layout_of, row, stack, gpus)
        job = _part(reasons, job_of, row, stack, layout)
        if not (model and stack and profile and layout and job):
            raise SkippedRowError("; ".join(reasons))
        layout = with_stages(row, layout, model.num_hidden_layers)
        stack = self._stacks.for_layers(row, stack, layout, model.num_hidden_layers)
        check_layout(model, job, stack, layout)
        return StepCase(model=model, job=job, stack=stack, profile=profile, layout=layout)

    def _forecaster(self, case: StepCase) -> Forecaster:
        """Return the forecaster of a case; its costs do not depend on the number of ranks."""
        key = (case.model, case.job, id(case.stack), id(case.profile))
        found = self._forecasters.get(key)
        if found is None:
            world_size = case.layout.world_size
            found = Forecaster(case.model, case.job, case.stack, case.profile, world_size)
            self._forecasters[key] = found
        return found


def _part(reasons: list[str], read: Callable[..., Part], *needed: object) -> Part | None:
    """Return one part of a case; None where it, or a part that it needs, cannot be read."""
    if any(part is None for part in needed):
        return None
    try:
        return read(*needed)
    except SkippedRowError as error:
        reasons.append(str(error))
        return None


def _reason(error: SkippedRowError | InputError) -> str:
    if isinstance(error, InputError):
        return "; ".join(str(problem).partition("\n")[0] for problem in error.problems)
    return str(error)


def _skipped(
    name: str, row: Row, measured: float | None, error: SkippedRowError | InputError
) -> RowResult:
    return RowResult(
        id=name,
        status=Status.SKIPPED,
        quantity=Quantity.STEP_TIME,
        reason=_reason(error),
        measured=measured,
        assumed=tuple(row.assumed),
        source=row.text("source"),
    )


def _result(read: _ReadRow, result: StepResult, reported: ReportedMemory | None) -> RowResult:
    row, case, ran = read.row, read.case, not failed(read.row)
    memory = None
    if reported is not None:
        predicted = max(reported.of(use) for use in result.memory)
        memory = Pair(measured=reported.size, predicted=predicted)
    return RowResult(
        id=read.name,
        status=Status.PREDICTED,
        quantity=Quantity.STEP_TIME,
        measured=read.measured if ran else None,
        predicted=result.step_time,
        low=result.low,
        high=result.high,
        peak_memory=result.peak_memory,
        feasible=result.peak_memory <= MEMORY_FRACTION * result.memory_capacity,
        assumed=tuple(row.assumed),
        labels={
            "stack": case.stack.name,
            "profile": case.profile.name,
            "precision": case.job.precision.value,
        },
        source=row.text("source"),
        choice=_choice(row, case),
        memory=memory,
        ran=ran,
    )


def _choice(row: Row, case: StepCase) -> Choice:
    problem = (
        case.model.name,
        str(case.layout.world_size),
        str(case.job.global_batch_size),
        str(case.job.seq_length),
        row.text("hardware"),
        case.stack.name,
        case.profile.name,
    )
    return Choice(problem=problem, layout=case.layout.model_dump_json())
