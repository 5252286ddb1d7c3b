"""How `traincast calibrate run` shows that it goes on: a bar on a terminal, else plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from calibrate.point_words import family_of, words_of
from calibrate.points import Point
from calibrate.records import Record, Status
from calibrate.run_events import (
    BatchBegun,
    Event,
    LeftOut,
    Note,
    Planned,
    PointBegun,
    PointEnded,
)
from reports.quantities import counted, percent, seconds

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


_ROUGH = 2
"""Digits of a time that is only expected."""


class Screen(Protocol):
    """Shows events of a run."""

    def show(self, event: Event) -> None:
        """Show one."""


@contextmanager
def screen() -> Iterator[Screen]:
    """Give a screen on standard error."""
    if not sys.stderr.isatty():
        yield LineScreen()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}", markup=False),
    )
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    with Progress(*columns, console=console, transient=True) as bar:
        yield BarScreen(bar=bar, task=bar.add_task("the machine is looked at", total=None, left=""))


@dataclass(slots=True, kw_only=True)
class Pace:
    """How long the rest will take, by how long what is done has taken."""

    began: float = field(default_factory=time.monotonic)
    points: int = 0
    ended: int = 0
    expected: float = 0.0
    """Seconds of all points."""
    done: float = 0.0
    """Of these, seconds of points that have ended."""

    def note(self, event: Event) -> None:
        """Take in an event."""
        match event:
            case Planned():
                self.began = time.monotonic()
                self.points, self.expected = event.points, event.seconds
            case PointEnded():
                self.ended += 1
                self.done += event.expected
            case LeftOut():
                self.ended += event.points
                self.expected -= event.expected
            case _:
                pass

    def left(self, now: float) -> float:
        """Return the seconds that are left, start-up of workers included as it was so far."""
        rest = max(0.0, self.expected - self.done)
        return rest * (now - self.began) / self.done if self.done > 0 else rest


@dataclass(slots=True, kw_only=True)
class BarScreen:
    """A bar with the points done and the time left; only what went wrong stays above it."""

    bar: Progress
    task: TaskID
    pace: Pace = field(default_factory=Pace)

    def show(self, event: Event) -> None:
        """Show one."""
        self.pace.note(event)
        text = _title(event)
        if text:
            self.bar.update(self.task, description=text)
        if isinstance(event, Note) or (isinstance(event, PointEnded) and _is_bad(event.record)):
            self.bar.console.print(_line(event))
        left = self.pace.left(time.monotonic())
        self.bar.update(
            self.task,
            total=self.pace.points or None,
            completed=self.pace.ended,
            left=f"{seconds(left, _ROUGH)} left" if self.pace.points else "",
        )


@dataclass(slots=True)
class LineScreen:
    """One line an event, for a file or a pipe."""

    pace: Pace = field(default_factory=Pace)

    def show(self, event: Event) -> None:
        """Show one."""
        self.pace.note(event)
        text = _line(event)
        if not text:
            return
        if isinstance(event, PointEnded):
            text = f"[{self.pace.ended}/{self.pace.points}] {text}"
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def _title(event: Event) -> str:
    match event:
        case BatchBegun():
            return f"{event.name}: workers are started"
        case PointBegun():
            return _name(event.point) + (", once more" if event.attempt > 1 else "")
        case _:
            return ""


def _line(event: Event) -> str:
    match event:
        case Note():
            return f"note: {event.text}"
        case Planned():
            done = f", {event.done} done before" if event.done else ""
            return (
                f"{event.machine}: {counted(event.points, 'point')} to measure{done}, "
                f"about {seconds(event.seconds, _ROUGH)}"
            )
        case BatchBegun():
            return f"{event.name}: {counted(event.points, 'point')}"
        case PointEnded():
            return f"{_name(event.record.point)}: {_result(event.record)}"
        case LeftOut():
            points = counted(event.points, "point")
            return f"{event.batch}: {points} left out, the budget is too short"
        case _:
            return ""


def _name(point: Point) -> str:
    return f"{family_of(point)} {words_of(point)}"


def _result(record: Record) -> str:
    if record.seconds is None:
        return f"{record.status}: {record.reason}"
    spread = "" if record.spread is None else f", spread {percent(record.spread)}"
    status = "" if record.status is Status.OK else f", {record.status}"
    return f"{seconds(record.seconds)}{spread}{status}"


def _is_bad(record: Record) -> bool:
    return record.status is not Status.OK
