"""Figures of forecasts side by side: how they scale, and what time costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from reports.charts import Chart, Figure, Series
from reports.quantities import plain
from reports.result_files.sweep import CompareFile, RowFacts, SweepFile
from reports.words import Words

_PERCENT = 100.0
_GPUS = "accelerators"


def of_sweep(found: SweepFile, words: Words) -> Iterator[Figure]:
    """Yield the charts of a sweep, a line for each value of the other keys."""
    lines: dict[str, list[RowFacts]] = {}
    first = found.keys[0] if found.keys else ""
    moves = _moves(found, first)
    for row in found.rows:
        others = [f"{key.rpartition('.')[2]} {row.values.get(key)}" for key in found.keys[1:]]
        if not moves:
            others.insert(0, f"{first.rpartition('.')[2]} {row.values.get(first)}")
        lines.setdefault(plain(", ".join(others)), []).append(row)
    yield from _charts(lines, words)


def _moves(found: SweepFile, key: str) -> bool:
    """Return whether a key makes the cluster larger or smaller: then it is the x axis."""
    values = [row.values.get(key) for row in found.rows]
    sizes = {row.accelerators for row in found.rows}
    return _numeric(values) and len(sizes) > 1 and len(set(map(str, values))) == len(sizes)


def of_comparison(found: CompareFile, words: Words) -> Iterator[Figure]:
    """Yield the charts of a comparison, a mark for each scenario."""
    rows = enumerate(found.scenarios, start=1)
    yield from _charts({f"{place}: {plain(row.title)}": [row] for place, row in rows}, words)


def _numeric(values: Sequence[object]) -> bool:
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)


def _charts(lines: dict[str, list[RowFacts]], words: Words) -> Iterator[Figure]:
    kept = {label: [row for row in rows if row.runs] for label, rows in lines.items()}
    kept = {label: rows for label, rows in kept.items() if rows}
    if not kept:
        return
    yield _chart(kept, words, "scaling-step-time", "Step time", "Seconds of a step")
    yield _chart(kept, words, "scaling-mfu", "MFU", "MFU, %")
    for name, title, label in (
        ("scaling-days", "Days for all tokens", "Days"),
        ("scaling-cost", "Cost of all tokens", "Cost"),
    ):
        if any(_value(name, row) is not None for rows in kept.values() for row in rows):
            yield _chart(kept, words, name, title, label)
    if any(row.cost is not None and row.days is not None for rows in kept.values() for row in rows):
        yield _cost_against_days(kept, words)


_ENDS: dict[str, Callable[[RowFacts], tuple[float | None, float | None, float | None]]] = {
    "scaling-step-time": lambda row: (row.step_time_s, row.low_s, row.high_s),
    "scaling-mfu": lambda row: _scaled(row, row.mfu, _PERCENT, inverse=True),
    "scaling-days": lambda row: (row.days, row.days_low, row.days_high),
    "scaling-cost": lambda row: _scaled(row, row.cost, 1.0, inverse=False),
}
"""Value, low and high end of each chart."""


def _scaled(
    row: RowFacts, value: float | None, scale: float, *, inverse: bool
) -> tuple[float | None, float | None, float | None]:
    """Return a value that goes with the step time, or with its inverse, and its interval."""
    step, low, high = row.step_time_s, row.low_s, row.high_s
    if value is None or step is None or low is None or high is None:
        return None, None, None
    ends = (step / high, step / low) if inverse else (low / step, high / step)
    return value * scale, value * scale * ends[0], value * scale * ends[1]


def _value(name: str, row: RowFacts) -> float | None:
    return _ENDS[name](row)[0]


def _chart(
    lines: dict[str, list[RowFacts]], words: Words, name: str, title: str, label: str
) -> Chart:
    currencies = {row.currency for rows in lines.values() for row in rows if row.cost is not None}
    unit = f", {currencies.pop()}" if name == "scaling-cost" and len(currencies) == 1 else ""
    series = [_series(name, text, rows) for text, rows in lines.items()]
    sizes = {row.accelerators for rows in lines.values() for row in rows}
    alike = len(sizes) == 1
    if alike:
        series = [_moved_to(place, each) for place, each in enumerate(series)]
    return Chart(
        name=name,
        title=words(title),
        x_label=words("Forecast") if alike else words("Accelerators"),
        y_label=words(label) + unit,
        series=tuple(series),
        log_x=not alike,
        x_names=tuple(str(place) for place in range(1, 1 + len(series))) if alike else (),
        caption=words("With 80 % intervals, all on {count} accelerators.", count=f"{max(sizes):,}")
        if alike
        else words("With 80 % intervals."),
    )


def _moved_to(place: int, series: Series) -> Series:
    """Return a series at its own place: at one number of accelerators all would hide each other."""
    return replace(series, x=(float(place),) * len(series.x), line=False)


def _series(name: str, label: str, rows: Sequence[RowFacts]) -> Series:
    rows = sorted(
        (row for row in rows if _value(name, row) is not None), key=lambda r: r.accelerators
    )
    ends = [_ENDS[name](row) for row in rows]
    sizes = [row.accelerators for row in rows]
    return Series(
        label=label,
        group=label,
        line=len(set(sizes)) == len(sizes) > 1,
        x=tuple(map(float, sizes)),
        y=tuple(end[0] or 0.0 for end in ends),
        low=tuple(end[1] or 0.0 for end in ends),
        high=tuple(end[2] or 0.0 for end in ends),
        texts=tuple(f"{row.profile}, {row.layout}" for row in rows),
    )


def _cost_against_days(lines: dict[str, list[RowFacts]], words: Words) -> Chart:
    rows = [row for each in lines.values() for row in each if row.cost is not None]
    points = [(row.days, row.cost, row) for row in rows if row.days is not None]
    return Chart(
        name="cost-against-days",
        title=words("What time costs"),
        x_label=words("Days for all tokens"),
        y_label=words("Cost"),
        series=(
            Series(
                label=words("forecasts"),
                group="rows",
                line=False,
                x=tuple(days for days, _, _ in points),
                y=tuple(cost or 0.0 for _, cost, _ in points),
                texts=tuple(f"{row.accelerators:,} x {row.profile}" for _, _, row in points),
            ),
        ),
    )
