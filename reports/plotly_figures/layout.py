"""What all figures of a page share: their height, their axes, and text that is never markup."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from textwrap import wrap
from typing import Any

from reports.quantities import plain

Trace = dict[str, Any]
ROW, AROUND = 34, 130
"""Pixels of a row of a figure, and of what is around its rows."""
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
"""A legend above its figure."""
_LEAST, _USUAL, _MOST = 260, 380, 1200
"""Pixels of the lowest, the usual and the highest figure."""
_MOST_NAMES = 40
"""Names of rows that stand under each other in the highest figure."""
_LONG = 44
"""Characters of a name that leave room for the figure beside it, or of a line below it."""


def shown(text: str) -> str:
    """Return text in which plotly sees neither tags nor entities nor formulas.

    >>> shown("<b>$x$ & y</b>")
    '&lt;b&gt;&#36;x&#36; &amp; y&lt;/b&gt;'
    """
    return escape(plain(text), quote=False).replace("$", "&#36;")


def layout_of(height: float = _USUAL, **more: Any) -> dict[str, Any]:
    """Return a layout at least as high as can be read; `height` is in pixels."""
    return {"height": int(min(_MOST, max(_LEAST, height))), "showlegend": True, **more}


def axis_of(title: str, *, log: bool = False, **more: Any) -> dict[str, Any]:
    """Return an axis with its title, on several lines where it is long."""
    kind = {"type": "log"} if log else {}
    text = "<br>".join(map(shown, wrap(title, _LONG)))
    return {"title": {"text": text}, "automargin": True, **kind, **more}


def rows_of(names: Sequence[str]) -> dict[str, Any]:
    """Return an axis of rows from above, with a name at each whole number.

    Rows are numbers and not categories: two that are called the same stay two, and a name that
    looks like a number stays a name.
    """
    every = max(1, -(-len(names) // _MOST_NAMES))
    return {
        "automargin": True,
        "range": [len(names) - 0.5, -0.5],
        **named_ticks(names, every),
    }


def named_ticks(names: Sequence[str], every: int = 1) -> dict[str, Any]:
    """Return a tick with a name at each whole number, or at one of several."""
    return {
        "tickvals": list(range(0, len(names), every)),
        "ticktext": list(map(_short, names[::every])),
        "showgrid": False,
        "zeroline": False,
    }


def _short(text: str) -> str:
    """Return the name of a row: of a long one its beginning, and that there is more."""
    return shown(text if len(text) <= _LONG else f"{text[: _LONG - 1]}…")
