"""Figures as files, whose names say how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.charts import Figure
from reports.drawing import png_of, svg_of
from simulator.errors import InputError, Problem
from simulator.files import write_atomic, write_bytes_atomic

_SUFFIXES = (".png", ".svg")


def save_figure(figures: Figure | Sequence[Figure], path: Path | str) -> None:
    """Write a figure, or several below each other, whole or not at all.

    Raises:
        InputError: the name ends with neither .png nor .svg, or Chinese text has no font.
    """
    drawn = figure_file(figures, path)
    if isinstance(drawn, str):
        write_atomic(Path(path), drawn)
    else:
        write_bytes_atomic(Path(path), drawn)


def figure_file(figures: Figure | Sequence[Figure], path: Path | str) -> str | bytes:
    """Return what a file of that name would hold.

    Raises:
        InputError: the name ends with neither .png nor .svg, or Chinese text has no font.
    """
    svg = figure_suffix(path) == ".svg"
    return f"{svg_of(figures, Path(path).stem)}\n" if svg else png_of(figures)


def figure_suffix(path: Path | str) -> str:
    """Return the ending of a picture's name, which says its format.

    Raises:
        InputError: it is neither .png nor .svg.
    """
    form = Path(path).suffix.lower()
    if form not in _SUFFIXES:
        rule = "must end with .png or .svg, which says the format"
        fix = f"{Path(path).stem or 'figure'}.svg"
        raise InputError(Problem(key="--figure", found=str(path)[:200], rule=rule, fix=fix))
    return form
