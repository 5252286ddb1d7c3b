"""The numbers of a figure as columns: for who cannot see it, and for files of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from reports.charts import (
    Chart,
    Diagram,
    Figure,
    HeatMap,
    Histogram,
    LayoutMap,
    Stacks,
    Timeline,
    Tornado,
)
from reports.quantities import number
from reports.section import NONE, figures
from reports.section import words as text_column
from reports.table import Column
from reports.words import Words

Row = Mapping[str, Any]


def figure_rows(figure: Figure) -> list[dict[str, Any]]:
    """Return one plain row a mark, all with the same keys."""
    return [dict(row) for row in _rows(figure)]


def figure_columns(figure: Figure, words: Words) -> tuple[Column, ...]:
    """Return the same as columns of text, with titles in the language of the page."""
    rows = figure_rows(figure)
    return (
        tuple(_column(words(name), [row[name] for row in rows]) for name in rows[0]) if rows else ()
    )


def _column(title: str, values: Sequence[Any]) -> Column:
    numeric = all(value is None or isinstance(value, int | float) for value in values)
    texts = [NONE if v is None else number(v) if isinstance(v, float) else str(v) for v in values]
    return figures(title, texts) if numeric else text_column(title, texts)


def _rows(figure: Figure) -> Iterator[Row]:  # noqa: PLR0912 - a branch for each kind
    match figure:
        case Chart():
            yield from _chart(figure)
        case Histogram():
            for low, high, count in zip(
                figure.edges, figure.edges[1:], figure.counts, strict=False
            ):
                yield {"from": low, "to": high, "count": count}
        case HeatMap():
            for one, line in zip(figure.ranks, figure.values, strict=True):
                for other, value in zip(figure.ranks, line, strict=True):
                    yield {"from rank": one, "to rank": other, "value": value}
        case Stacks():
            for place, label in enumerate(figure.bars):
                values = {part.label: part.values[place] for part in figure.parts}
                yield {"bar": label, **values}
        case Timeline():
            for row, kind, start, stop, text in zip(
                figure.row, figure.kind, figure.start, figure.stop, figure.texts, strict=True
            ):
                bar = {"row": figure.rows[row], "kind": figure.kinds[kind], "what": text}
                yield {**bar, "start": start, "stop": stop}
        case LayoutMap():
            for pp, cells in zip(figure.rows, figure.cells, strict=True):
                for tp, cell in zip(figure.columns, cells, strict=True):
                    yield {"tp": tp, "pp": pp, "value": cell.value, "why": cell.text or cell.sign}
        case Tornado():
            for swing in figure.swings:
                yield {"change": swing.label, "low": swing.low, "high": swing.high}
        case Diagram():
            for cable in figure.cables:
                yield {"link": cable.text, "utilisation": cable.used}
        case _:
            assert_never(figure)


def _chart(chart: Chart) -> Iterator[Row]:
    intervals = any(series.low for series in chart.series)
    texts = any(series.texts for series in chart.series)
    for series in chart.series:
        for place, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
            row: dict[str, Any] = {"series": series.label, "x": x, "y": y}
            if intervals:
                row["low"] = series.low[place] if series.low else None
                row["high"] = series.high[place] if series.high else None
            if texts:
                row["what"] = series.texts[place] if series.texts else ""
            yield row
