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
    """Measured points that count as rates, beside what the profile forecasts."""

    family: tuple[str, ...]
    group: tuple[str, ...]
    """Points of a family that belong to one curve."""
    x: tuple[float, ...]
    """Bytes of what moves bytes, FLOP of what computes."""
    unit: tuple[str, ...]
    """Of the rates: `B/s` (of collectives the bus bandwidth) or `FLOP/s`."""
    measured: tuple[float, ...]
    forecast: tuple[float | None, ...]
    """None where there is no forecast."""
    nominal: tuple[float | None, ...]
    """The data sheet's; None where it says nothing."""


class CheckedColumns(Columns):
    """Every point that was measured or tried; times are in seconds."""

    family: tuple[str, ...]
    words: tuple[str, ...]
    """The point by itself."""
    status: tuple[str, ...]
    """`ok`, or what became of it."""
    reason: tuple[str, ...]
    """Why it does not count, or has no forecast; else empty."""
    measured_s: tuple[float | None, ...]
    predicted_s: tuple[float | None, ...]
    shipped_s: tuple[float | None, ...]
    """What the shipped profile `base` forecasts."""
    used_by_the_fit: tuple[bool, ...]


class PairColumns(Columns):
    """What pairs of ranks reached with their largest message, one way."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    bytes_per_second: tuple[float, ...]


class SlowRankFacts(ResultRecord):
    """A rank out of line with the others."""

    rank: int
    part: str
    """`link` or `compute`."""
    factor: float
    """Its time over that of the typical rank."""


class SlowPairFacts(ResultRecord):
    """Two ranks with a slow link between them."""

    first: int
    second: int
    factor: float
    """Its time over that of the typical pair."""


class StragglerFacts(ResultRecord):
    """All that is slower than the others, the slowest first."""

    ranks: tuple[SlowRankFacts, ...] = ()
    pairs: tuple[SlowPairFacts, ...] = ()


class CalibrationFile(Result):
    """A folder of measurements with its profile."""

    title: str
    profile: str
    profile_sha256: str
    base: str | None
    """The shipped profile that it is compared with."""
    sections: tuple[SectionText, ...]
    """The report in words: machine, software, points, errors, constants, clocks."""
    rates: RatedColumns
    checked: CheckedColumns
    pairs: PairColumns
    stragglers: StragglerFacts
    warnings: tuple[str, ...] = ()
