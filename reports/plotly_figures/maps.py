"""Figures made of cells: a value for pairs of ranks, and one for layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reports.charts import HeatMap, LayoutMap
from reports.palette import ON_LIGHT
from reports.plotly_figures.layout import AROUND, Trace, axis_of, layout_of, named_ticks, shown

_RANK, _CELL = 8, 46
"""Pixels of the height of a rank's row and of a layout's."""
_LEAST = 380


def heat_map(found: HeatMap) -> dict[str, Any]:
    """Return a cell a pair of ranks; a pair that was not measured is a hole."""
    ranks = list(map(str, found.ranks))
    trace = {
        "type": "heatmap",
        "x": ranks,
        "y": ranks,
        "z": [list(row) for row in found.values],
        "colorscale": "Viridis",
        "colorbar": {"title": {"text": shown(found.unit)}},
        "hovertemplate": f"%{{y}} - %{{x}}: %{{z:.4g}} {shown(found.unit)}<extra></extra>",
    }
    named: dict[str, Any] = {"type": "category", "showgrid": False}
    return {
        "data": [trace],
        "layout": layout_of(
            _LEAST + _RANK * len(ranks),
            xaxis=axis_of(found.x_label, **named),
            yaxis=axis_of(found.y_label, autorange="reversed", **named),
        ),
    }


def layout_map(found: LayoutMap) -> dict[str, Any]:
    """Return a cell for each pair of degrees, with its value or the sign of why it has none."""
    values = [[cell.value for cell in row] for row in found.cells]
    trace: Trace = {
        "type": "heatmap",
        "x": list(range(len(found.columns))),
        "y": list(range(len(found.rows))),
        "z": values,
        "customdata": _hovers(found),
        "hovertemplate": "%{customdata}<extra></extra>",
        "hoverongaps": True,
        "colorscale": "Viridis",
        "reversescale": True,
        "colorbar": {"title": {"text": shown(found.unit)}},
        "xgap": 2,
        "ygap": 2,
    }
    known = [value for row in values for value in row if value is not None]
    return {
        "data": [trace],
        "layout": layout_of(
            AROUND + _CELL * len(found.rows),
            xaxis=axis_of(found.x_label, **named_ticks(found.columns)),
            yaxis=axis_of(found.y_label, **named_ticks(found.rows)),
            annotations=list(_cell_texts(found, known)),
        ),
    }


def _hovers(found: LayoutMap) -> list[list[str]]:
    return [
        [
            shown(f"tp {tp}, pp {pp}: {cell.text}")
            for tp, cell in zip(found.columns, row, strict=True)
        ]
        for pp, row in zip(found.rows, found.cells, strict=True)
    ]


def _cell_texts(found: LayoutMap, known: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Yield what stands in each cell: white on the dark half of the scale, which is the slow."""
    middle = (min(known) + max(known)) / 2 if known else 0.0
    for row, cells in enumerate(found.cells):
        for column, cell in enumerate(cells):
            text = cell.sign if cell.value is None else f"{cell.value:.4g}"
            note: dict[str, Any] = {"x": column, "y": row, "text": shown(text), "showarrow": False}
            if cell.value is not None:
                note["font"] = {"color": "#ffffff" if cell.value > middle else ON_LIGHT}
            yield note
