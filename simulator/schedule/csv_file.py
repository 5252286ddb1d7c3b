"""Schedules as CSV in PyTorch's notation: a row a rank, a cell a pass, empty for a bubble.

`0F3` is the forward pass of micro-batch 3 at place (torch: stage) 0; `I`, `W` and `B` are its
input gradient, its weight gradient and both; `(0F3;1B2)OVERLAP_F_B` runs two at the same time.
Source: PyTorch 2.9 torch/distributed/pipelining/schedules.py, _Action.from_str, _dump_csv and
_load_csv (format "compute_only").
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from simulator.errors import InputError, Problem
from simulator.parallel.placement import PipelineShape, Placement
from simulator.schedule.action import Action, ActionKind, Schedule
from simulator.schedule.verify import (
    ScheduleError,
    dependency,
    in_dependency_order,
    wrong_passes,
)

_PASS = re.compile(r"([0-9]{1,6})([FBIW])([0-9]{1,7})")
_OVERLAP = re.compile(r"\((.*)\)OVERLAP_F_B")
_COMMUNICATION = re.compile(
    r"\d*(UNSHARD|RESHARD|SEND_F|RECV_F|SEND_B|RECV_B|SEND_F_RECV_B|SEND_B_RECV_F|REDUCE_GRAD)\d*"
)
_KINDS_A_PLACE = 3
"""Passes of a micro-batch at one place, at most: F, I and W."""
_SHOWN = 3
"""Passes of one kind of mistake that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """One pass of the file, and where it stands (counted from 1)."""

    row: int
    column: int
    text: str

    @property
    def key(self) -> str:
        return f"row {self.row}, column {self.column}"


def parse_schedule(text: str, shape: PipelineShape) -> Schedule:
    """Return the schedule of a CSV text that `check_schedule` has found to be right."""
    return tuple(
        tuple(
            action
            for cell in row
            for action in [_action(cell, shape)]
            if isinstance(action, Action)
        )
        for row in _rows(text)
    )


def check_schedule(text: str, shape: PipelineShape, micro_batches: int, where: str) -> None:
    """Raise `InputError` with everything that is wrong in a CSV schedule, by row and column."""
    try:
        if too_many := list(_overfull(text, shape, micro_batches)):
            raise InputError(*(_problem(where, *found) for found in too_many[:_SHOWN]))
        rows = _rows(text)
    except csv.Error as error:
        raise InputError(
            _problem(where, "rows", str(error), "must be CSV", "a file of cells")
        ) from error
    problems = [_problem(where, *found) for found in _cell_mistakes(rows, shape)]
    if len(rows) != shape.pp:
        problems.append(
            _problem(
                where,
                "rows",
                str(len(rows)),
                f"must be one row a rank: pp = {shape.pp}",
                f"{shape.pp} rows",
            )
        )
    if not problems:
        schedule = parse_schedule(text, shape)
        problems = [_problem(where, *found) for found in _missing(schedule, shape, micro_batches)]
        problems = problems or [_problem(where, *found) for found in _deadlock(schedule, shape)]
    if problems:
        raise InputError(*problems)


def to_csv(schedule: Schedule, shape: PipelineShape) -> str:
    """Return a schedule as CSV, without its bubbles."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for actions in schedule:
        writer.writerow(_written(action, shape) for action in actions)
    return out.getvalue()


def _rows(text: str) -> list[list[_Cell]]:
    """Return the passes of each row; overlapped ones are taken apart, bubbles left out."""
    rows = []
    for number, fields in enumerate(csv.reader(io.StringIO(text)), start=1):
        row = []
        for column, field in enumerate(fields, start=1):
            overlap = _OVERLAP.fullmatch(field.strip())
            inside = overlap[1].split(";") if overlap else [field]
            row += [_Cell(row=number, column=column, text=t.strip()) for t in inside if t.strip()]
        if fields:
            rows.append(row)
    return rows


def _overfull(
    text: str, shape: PipelineShape, micro_batches: int
) -> Iterator[tuple[str, str, str, str]]:
    """Yield rows that no rank runs, and those with too many passes, before cells are looked at."""
    most, rows = _KINDS_A_PLACE * shape.vpp * micro_batches, 0
    for number, fields in enumerate(csv.reader(io.StringIO(text)), start=1):
        count = len(fields) - fields.count("")
        rows += bool(fields)
        if count > most:
            rule = (
                f"a rank runs at most 3 passes of each of {micro_batches} micro-batches at each of "
                f"{shape.vpp} places: {most}"
            )
            fix = f"every pass of micro-batches 0 to {micro_batches - 1} exactly once"
            yield f"row {number}", f"{count} passes", rule, fix
    if rows > shape.pp:
        yield "rows", str(rows), f"must be one row a rank: pp = {shape.pp}", f"{shape.pp} rows"


def _action(cell: _Cell, shape: PipelineShape) -> Action | tuple[str, str]:
    """Return the pass in a cell, or the rule that it breaks and the fix."""
    found = _PASS.fullmatch(cell.text)
    if found is None:
        if _COMMUNICATION.fullmatch(cell.text):
            return (
                "communication is derived from the passes, and not read from the file",
                'a file written with format="compute_only"',
            )
        return (
            "must be a place, F, B, I or W, and a micro-batch",
            "0F0, 1B3 or (0F3;1B2)OVERLAP_F_B",
        )
    place, kind, micro_batch = int(found[1]), ActionKind(found[2]), int(found[3])
    if place >= shape.places:
        return f"places are 0 to pp x vpp - 1 = {shape.places - 1}", "another place, or another vpp"
    stage = shape.stage(place)
    if stage != cell.row - 1:
        other = Placement.V if shape.placement is Placement.LOOP else Placement.LOOP
        return (
            f"with placement {shape.placement} place {place} is on row {stage + 1}",
            f'the pass on its row, or placement = "{other}"',
        )
    return Action(stage, kind, micro_batch, place // shape.pp)


def _cell_mistakes(
    rows: list[list[_Cell]], shape: PipelineShape
) -> Iterator[tuple[str, str, str, str]]:
    for row in rows:
        for cell in row:
            result = _action(cell, shape)
            if not isinstance(result, Action):
                yield cell.key, cell.text[:40], *result


def _missing(
    schedule: Schedule, shape: PipelineShape, micro_batches: int
) -> Iterator[tuple[str, str, str, str]]:
    for stage, actions in enumerate(schedule):
        wrong = wrong_passes(actions, stage, shape, micro_batches)
        shown = [f"{_written(a, shape)} {n} times" for a, n in islice(wrong.items(), _SHOWN)]
        if wrong:
            more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
            rule = (
                f"each place of the row runs micro-batches 0 to {micro_batches - 1} once forward, "
                "and once backward (B, or I and W)"
            )
            yield f"row {stage + 1}", ", ".join(shown) + more, rule, "every pass exactly once"


def _deadlock(schedule: Schedule, shape: PipelineShape) -> Iterator[tuple[str, str, str, str]]:
    try:
        for _ in in_dependency_order(schedule, shape.vpp, shape.placement):
            pass
    except ScheduleError as error:
        for action in error.stuck:
            needed = dependency(action, shape.pp, shape.vpp, shape.placement)
            assert needed is not None, "a pass that needs nothing is never stuck"
            yield (
                f"row {action.stage + 1}",
                _written(action, shape),
                f"waits for ever for {_written(needed, shape)} of row {needed.stage + 1}",
                "an order in which some row can always go on",
            )


def _written(action: Action, shape: PipelineShape) -> str:
    place = shape.place(action.stage, action.chunk)
    return f"{place}{action.kind}{action.micro_batch}"


def _problem(where: str, key: str, found: str, rule: str, fix: str) -> Problem:
    return Problem(where=where, key=key, found=found, rule=rule, fix=fix)
