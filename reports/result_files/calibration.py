"""What was measured on a machine, as `traincast calibrate report --json` writes it."""

from __future__ import annotations

from typing import Literal

from reports.result_files.parts import Columns, Result, ResultRecord


class ColumnText(ResultRecord):
    """A column of a table as it is read."""

    title: str
    justify: Literal["left", "right"]
    cells: tuple[str, ...]


class SectionText(ResultRecord):
    """A part of the report in words; text and table may be empty."""

    title: str
    text: tuple[str, ...] = ()
    columns: tuple[ColumnText, ...] = ()


class RatedColumns(Columns):
    """Measured points as rates, beside what the profile forecasts."""

    family: tuple[str, ...]
    group: tuple[str, ...]
    """Points of a family that belong to one curve."""
    x: tuple[float, ...]
    """What the rate is over: bytes, or products of a matrix product."""
    measured: tuple[float, ...]
    """Bytes/s or FLOP/s."""
    forecast: tuple[float | None, ...]
    nominal: tuple[float | None, ...]
    """The vendor's number for it."""


class CheckedColumns(Columns):
    """Every point that was compared with its forecast, in seconds."""

    family: tuple[str, ...]
    words: tuple[str, ...]
    measured_s: tuple[float, ...]
    predicted_s: tuple[float, ...]
    used_by_the_fit: tuple[bool, ...]


class PairColumns(Columns):
    """What pairs of ranks reached with their largest message."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    bytes_per_second: tuple[float, ...]


class CalibrationFile(Result):
    """A folder of measurements with its profile."""

    title: str
    profile: str
    profile_sha256: str
    base: str | None
    """The shipped profile that it is compared with."""
    sections: tuple[SectionText, ...]
    rates: RatedColumns
    checked: CheckedColumns
    pairs: PairColumns
    warnings: tuple[str, ...] = ()
