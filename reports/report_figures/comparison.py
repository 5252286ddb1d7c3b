"""Figures of scenarios side by side, and of what time costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.sweep.sweep_file import Quantity
from reports.charts import Chart, Figure, Series
from reports.quantities import plain
from reports.report_figures.forecast import DRAWN, points, y_label
from reports.result_files.sweep import ComparedRow, CompareFile, RowFacts
from reports.words import Words


def of_comparison(found: CompareFile, words: Words) -> Iterator[Figure]:
    """Yield the charts of a comparison, a mark for each scenario at a place of its own."""
    rows = [(place, row) for place, row in enumerate(found.scenarios) if row.runs]
    for quantity in DRAWN:
        series = [
            points(f"{place + 1}: {plain(row.title)}", [(place, row)], quantity, line=False)
            for place, row in rows
        ]
        if any(each.x for each in series):
            yield _compared(found.scenarios, quantity, series, words)
    yield from cost_against_days([row for _, row in rows], words)


def _compared(
    rows: Sequence[ComparedRow], quantity: Quantity, series: Sequence[Series], words: Words
) -> Chart:
    sizes = {row.accelerators for row in rows if row.runs}
    alike = words("With 80 % intervals, all on {count} accelerators.", count=f"{max(sizes):,}")
    return Chart(
        name=DRAWN[quantity].name,
        title=words(DRAWN[quantity].title),
        x_label=words("Forecast"),
        y_label=y_label(quantity, rows, words),
        series=tuple(each for each in series if each.x),
        x_names=tuple(str(place) for place in range(1, 1 + len(rows))),
        from_zero=True,
        caption=alike if len(sizes) == 1 else words("With 80 % intervals."),
    )


def cost_against_days(rows: Sequence[RowFacts], words: Words) -> Iterator[Figure]:
    """Yield what each forecast costs over the days that it takes."""
    known = [(row.days, row.cost, row) for row in rows if row.days is not None]
    found = [(days, cost, row) for days, cost, row in known if cost is not None]
    if not found:
        return
    yield Chart(
        name="cost-against-days",
        title=words("What time costs"),
        x_label=words("Days for all tokens"),
        y_label=y_label(Quantity.COST, rows, words),
        series=(
            Series(
                label=words("forecasts"),
                group="rows",
                line=False,
                x=tuple(days for days, _, _ in found),
                y=tuple(cost for _, cost, _ in found),
                texts=tuple(f"{row.accelerators:,} x {row.profile}" for _, _, row in found),
            ),
        ),
        caption=words("Without failures."),
    )
