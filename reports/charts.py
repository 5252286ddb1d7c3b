"""Figures as plain numbers: charts of lines and marks, histograms, maps of pairs of ranks."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Lines and marks over two axes."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    diagonal: bool = False
    """Whether x and y mean the same, and equal values are marked by a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Bars of equal width."""

    title: str
    x_label: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """A value for pairs of ranks; None where it was not measured."""

    title: str
    unit: str
    ranks: tuple[int, ...]
    values: tuple[tuple[float | None, ...], ...]
    """By first rank, then second."""


Figure: TypeAlias = Chart | Histogram | HeatMap
