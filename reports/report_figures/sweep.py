"""Figures of a sweep: each quantity over its first key, a line for the values of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.sweep.sweep_file import Quantity
from reports.charts import Chart, Figure, Series
from reports.quantities import plain
from reports.report_figures.comparison import cost_against_days
from reports.report_figures.forecast import DRAWN, points, y_label
from reports.result_files.sweep import SweepFile, SweepRow
from reports.sweep_view import value_text
from reports.words import Words

_WIDE = 4.0
"""Ratio of the ends of an axis from which on it is logarithmic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """Where rows stand along the x axis."""

    label: str
    places: tuple[float, ...]
    """Of each row."""
    names: tuple[str, ...] = ()
    """Of the places, where they are not numbers."""
    sizes: bool = False
    """Whether they are numbers of accelerators."""


def of_sweep(found: SweepFile, words: Words) -> Iterator[Figure]:
    """Yield the charts of a sweep: of each quantity that any row has."""
    for quantity, drawn in DRAWN.items():
        if any(row.runs and drawn.ends(row) is not None for row in found.rows):
            yield sweep_chart(found, quantity, words)
    yield from cost_against_days([row for row in found.rows if row.runs], words)


def sweep_chart(found: SweepFile, quantity: Quantity, words: Words) -> Chart:
    """Return one quantity over the first key, with a line for each combination of the others."""
    axis = _axis(found, words)
    lines: dict[str, list[tuple[float, SweepRow]]] = {}
    others = _free_keys(found)
    for place, row in zip(axis.places, found.rows, strict=True):
        if row.runs:
            lines.setdefault(_line(row, others), []).append((place, row))
    series = [
        points(label, placed, quantity, line=not axis.names) for label, placed in lines.items()
    ]
    series = [each for each in series if each.x]
    drawn = sum(len(each.x) for each in series)
    rising = axis.sizes and quantity is Quantity.TOKENS_PER_SECOND
    return Chart(
        name=DRAWN[quantity].name,
        title=words(DRAWN[quantity].title),
        x_label=axis.label,
        y_label=y_label(quantity, found.rows, words),
        series=(*series, *(_in_proportion(series, words) if rising else ())),
        log_x=not axis.names and _wide([x for each in series for x in each.x]),
        x_names=axis.names,
        from_zero=True,
        caption=_caption(len(found.rows) - drawn, words),
    )


def _axis(found: SweepFile, words: Words) -> _Axis:
    """Return the first key as an axis; as that of accelerators where it says how many."""
    first = found.keys[0] if found.keys else ""
    values = [row.values.get(first) for row in found.rows]
    if not values or not all(map(_numeric, values)):
        texts = list(map(_text, values))
        names = tuple(dict.fromkeys(texts))
        places = tuple(float(names.index(text)) for text in texts)
        return _Axis(label=first, places=places, names=names)
    pairs = {(_text(row.values.get(first)), row.accelerators) for row in found.rows if row.runs}
    sizes = {size for _, size in pairs}
    if len({value for value, _ in pairs}) == len(pairs) == len(sizes) > 1:
        places = tuple(float(row.accelerators) for row in found.rows)
        return _Axis(label=words("Accelerators"), places=places, sizes=True)
    return _Axis(label=first, places=tuple(float(value or 0.0) for value in values))


def _free_keys(found: SweepFile) -> tuple[str, ...]:
    """Return the keys after the first that no key before them settles.

    One that is moved together with another, or has one value only, tells no lines apart.
    """
    kept = list(found.keys[:1])
    for key in found.keys[1:]:
        before = {tuple(_text(row.values.get(each)) for each in kept) for row in found.rows}
        with_it = {
            tuple(_text(row.values.get(each)) for each in (*kept, key)) for row in found.rows
        }
        if len(with_it) > len(before):
            kept.append(key)
    return tuple(kept[1:])


def _line(row: SweepRow, keys: Sequence[str]) -> str:
    return ", ".join(f"{key.rpartition('.')[2]} {_text(row.values.get(key))}" for key in keys)


def _in_proportion(lines: Sequence[Series], words: Words) -> Iterator[Series]:
    """Yield what each line would be if its rate grew with the accelerators, named once."""
    for number, line in enumerate(lines):
        yield replace(
            line,
            label="" if number else words("in proportion"),
            line=True,
            reference=True,
            y=tuple(line.y[0] * x / line.x[0] for x in line.x),
            low=(),
            high=(),
            texts=(),
        )


def _caption(missing: int, words: Words) -> str:
    """Return what the bars of points are, and how many combinations are not drawn."""
    intervals = words("With 80 % intervals.")
    if not missing:
        return intervals
    return f"{intervals} {words('Combinations without such a forecast: {count}.', count=missing)}"


def _wide(places: Sequence[float]) -> bool:
    return bool(places) and min(places) > 0 and max(places) >= _WIDE * min(places)


def _numeric(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return plain(value_text(value))
