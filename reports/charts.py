"""Figures as plain numbers, before anything is drawn; every kind of them is one record.

`name` is what a figure is called in files and links; `caption` says in a sentence how to read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points of one kind; `group` says which series share a colour."""

    label: str
    group: str
    line: bool
    """Drawn as a line; else as marks."""
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    """Lower ends of intervals, one a point; empty without intervals."""
    high: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    """What each point is; empty where x and y say it all."""
    steps: bool = False
    """Whether a value holds until the next x."""
    reference: bool = False
    """Whether it is only what others are set against: a thin grey line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A straight line across a chart, at one y."""

    label: str
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Lines and marks over two axes."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    x_names: tuple[str, ...] = ()
    """Names of the places 0, 1, 2, ... on the x axis; empty where it is one of numbers."""
    diagonal: bool = False
    """Whether x and y mean the same, and equal values are marked by a line."""
    tolerance: float = 0.0
    """With a diagonal: share of y by which two more lines stand off from it."""
    rules: tuple[Rule, ...] = ()
    from_zero: bool = False
    """Whether the y axis begins at 0, so that heights compare."""
    name: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Bars of equal width."""

    title: str
    x_label: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    y_label: str = "points"
    marks: tuple[Rule, ...] = ()
    """Upright lines; `y` is their x."""
    name: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """A value for pairs of ranks; None where it was not measured."""

    title: str
    unit: str
    ranks: tuple[int, ...]
    values: tuple[tuple[float | None, ...], ...]
    """By first rank, then second."""
    x_label: str = "to rank"
    y_label: str = "from rank"
    name: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of every stack of bars; `values[i]` is that of bar i."""

    label: str
    values: tuple[float, ...]
    tone: int | None = None
    """Place of its colour in the palette, so that a thing has the same one in every figure; None:
    its place among the parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What each bar must stay below; `values[i]` is that of bar i."""

    label: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacks:
    """Bars of parts on top of each other, or, where a part is negative, to either side of 0."""

    title: str
    y_label: str
    bars: tuple[str, ...]
    parts: tuple[Part, ...]
    limit: Limit | None = None
    name: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Bars over time in rows: bar i is in row `row[i]`, from `start[i]` to `stop[i]` seconds."""

    title: str
    rows: tuple[str, ...]
    kinds: tuple[str, ...]
    row: tuple[int, ...]
    kind: tuple[int, ...]
    """Place of the bar's kind in `kinds`."""
    start: tuple[float, ...]
    stop: tuple[float, ...]
    texts: tuple[str, ...]
    """What each bar is."""
    x_label: str
    tones: tuple[int, ...] = ()
    """Place of each kind's colour in the palette; empty: its place among the kinds."""
    labels: tuple[str, ...] = ()
    """What stands in each bar where there is room; empty: nothing."""
    idle: str = ""
    """What the time between two bars is called; empty: nothing is said of it."""
    name: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a map: a value, or the sign of why there is none."""

    value: float | None
    sign: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutMap:
    """Cells by row, then column."""

    title: str
    x_label: str
    y_label: str
    unit: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    signs: tuple[tuple[str, str], ...] = ()
    """Each sign and what it means."""
    name: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swing:
    """What one change does: the value at its two ends."""

    label: str
    low: float
    high: float
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tornado:
    """Changes by how far each moves a value, the largest on top."""

    title: str
    x_label: str
    centre: float
    swings: tuple[Swing, ...]
    name: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A device of a network, or a group of them: x from 0 to 1, y in rows from below."""

    label: str
    kind: str
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cable:
    """What joins two boxes; `used` is the utilisation of its fullest link, None if not known."""

    one: int
    other: int
    used: float | None
    text: str
    capacity: float = 0.0
    """Bytes/s in one direction, of all its cables together; lines are as thick as it says."""
    label: str = ""
    """What is written on the line, where there is room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """Boxes and what joins them."""

    title: str
    boxes: tuple[Box, ...]
    cables: tuple[Cable, ...]
    unit: str
    name: str = ""
    caption: str = ""


Figure: TypeAlias = Chart | Histogram | HeatMap | Stacks | Timeline | LayoutMap | Tornado | Diagram
