"""Bars over time, as columns that the page draws: tens of thousands of traces would stall it.

The page draws shapes while few bars are in view and a picture while they are many, writes in a bar
where there is room, and finds the bar under the pointer (`page/assets/timeline.js`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from reports.charts import Timeline
from reports.palette import area
from reports.plotly_figures.layout import (
    AROUND,
    LEGEND,
    ROW,
    Trace,
    axis_of,
    layout_of,
    rows_of,
    shown,
)

_MOST_UNITS = 2**32 - 1
_MANY = 24
"""Rows from which on they are half as high."""


def timeline(found: Timeline) -> dict[str, Any]:
    """Return the legend and the axes, and as `bars` what the page draws between them."""
    rows = len(found.rows)
    used = sorted(set(found.kind))
    tones = found.tones or tuple(range(len(found.kinds)))
    return {
        "data": [_entry(found.kinds[kind], area(tones[kind])) for kind in used],
        "bars": _bars(found, [area(tone) for tone in tones]),
        "layout": layout_of(
            AROUND + (ROW if rows < _MANY else ROW / 2) * rows,
            hovermode=False,
            dragmode="zoom",
            xaxis=axis_of(found.x_label, range=[0, max(found.stop)], showgrid=False),
            yaxis=rows_of(found.rows),
            legend={**LEGEND, "itemclick": False, "itemdoubleclick": False},
        ),
    }


def _entry(name: str, colour: str) -> Trace:
    """Return an entry of the legend."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": shown(name),
        "x": [None],
        "y": [None],
        "marker": {"color": colour, "symbol": "square", "size": 12},
    }


def _bars(found: Timeline, colours: Sequence[str]) -> dict[str, Any]:
    """Return the bars row by row in the order of time, so that the page can bisect them.

    `first[row]` is the place of a row's first bar, `text` and `label` are places in lists in which
    each text stands once: what bars are is said by few words and many numbers of micro-batches.
    Times are whole numbers of `unit` seconds, by which the longest is all but a 32-bit number: as
    short as in single precision, and a few hundred times as exact.
    """
    unit = max(found.stop) / _MOST_UNITS
    order = sorted(range(len(found.row)), key=lambda bar: (found.row[bar], found.start[bar]))
    counts = [0] * len(found.rows)
    for row in found.row:
        counts[row] += 1
    texts, text = _once([found.texts[bar] for bar in order])
    labels, label = _once([shown(found.labels[bar]) for bar in order] if found.labels else [])
    return {
        "first": [0, *accumulate(counts)],
        "kind": [found.kind[bar] for bar in order],
        "unit": unit,
        "end": max(found.stop),
        "start": [round(found.start[bar] / unit) for bar in order],
        "stop": [round(found.stop[bar] / unit) for bar in order],
        "text": text,
        "texts": texts,
        "label": label,
        "labels": labels,
        "colours": list(colours),
        "idle": found.idle,
        "rows": list(found.rows),
    }


def _once(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the texts that differ, and the place of each in them.

    >>> _once(["a", "b", "a"])
    (['a', 'b'], [0, 1, 0])
    """
    known: dict[str, int] = {}
    places = [known.setdefault(text, len(known)) for text in texts]
    return list(known), places
