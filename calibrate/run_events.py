"""What a run of measurements says of itself while it goes on, for whoever draws it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from calibrate.points import Point
from calibrate.records import Record, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that the user should know."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What is ahead."""

    machine: str
    points: int
    """To be measured in this run."""
    done: int
    """Points of the plan that have a record from an earlier run."""
    seconds: float
    """Expected for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchBegun:
    """Workers for a batch are being started."""

    name: str
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PointBegun:
    """A point is being measured."""

    point: Point
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PointEnded:
    """A point has its record, which is on disk."""

    record: Record
    expected: float
    """Seconds that it was expected to take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Points for which the budget was too short."""

    batch: str
    points: int
    expected: float
    """Seconds that they were expected to take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The end of the run."""

    folder: str
    journal: str
    seconds: float
    """That the run took."""
    counts: Mapping[Status, int]
    """Records of this run by status."""
    left_out: int
    fitted: int
    """Records of the whole journal that a fit can use."""


Event: TypeAlias = Note | Planned | BatchBegun | PointBegun | PointEnded | LeftOut | Finished
