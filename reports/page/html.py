"""A document as one HTML file that needs nothing else: script, style, data and figures inside.

Its content security policy lets nothing be fetched and runs only the scripts whose hashes it names.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from typing import Any

import numpy as np

from reports.charts import Figure
from reports.figure_table import figure_columns
from reports.page.document import Document
from reports.plotly_figures import plotly_figure
from reports.words import words_in
from simulator.errors import InputError, Problem

MOST_BYTES = 6_000_000
"""Bytes of a page that mail and chat still take; a report of more results is cut into several."""
PLOTLY = "plotly/plotly-cartesian.min.js"
"""The script that draws figures; `source.toml` beside it says where it is from."""
_OF_FIGURES, _OF_ALL = ("timeline.js", "figures.js"), "page.js"
"""Our own scripts, in the order in which they run."""
_SHORT = 64
"""Numbers that stand in a page as they are: they are read by people too."""
_UNSIGNED = {f"u{size}": 2 ** (8 * size) - 1 for size in (1, 2, 4)}
_ASSETS = files("reports.page").joinpath("assets")
_ESCAPED = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}
_SEPARATORS = {ord("\u2028"): "\\u2028", ord("\u2029"): "\\u2029"}


def html_of(document: Document) -> str:
    """Return the page. Raises `InputError` where it would be larger than `MOST_BYTES`."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    figures = dict(_figures(document))
    plotly = _asset(PLOTLY) if figures else ""
    scripts = list(map(_asset, (*(_OF_FIGURES if figures else ()), _OF_ALL)))
    text = environment.from_string(_asset("page.html.j2")).render(
        document=document,
        words=words_in(document.language),
        policy=_policy([*([plotly] if plotly else []), *scripts]),
        # Ours and plotly's, and data in which nothing can end the element that holds it.
        style=Markup(_asset("page.css")),
        plotly=Markup(plotly),
        scripts=[Markup(script) for script in scripts],
        data=Markup(_json(figures)),
        columns_of=figure_columns,
    )
    page = text.rstrip("\n") + "\n"
    size = len(page.encode())
    if size > MOST_BYTES:
        rule = f"a page is at most {MOST_BYTES:,} bytes, so that it can be mailed and opens fast"
        fix = "fewer results a report, or --figures and --tables for the rest"
        raise InputError(Problem(key="--out", found=f"{size:,} bytes", rule=rule, fix=fix))
    return page


def figure_id(part: str, number: int, figure: Figure) -> str:
    """Return what a figure of a part is called in its page."""
    return f"{part}-{figure.name or number}"


def _figures(document: Document) -> Iterator[tuple[str, Any]]:
    for part in document.parts:
        for number, figure in enumerate(part.figures):
            yield figure_id(part.name, number, figure), _packed(plotly_figure(figure))


def _packed(value: Any) -> Any:
    """Return long lists of numbers as plotly's typed arrays, at most four bytes a number."""
    if isinstance(value, dict):
        return {key: _packed(each) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) > _SHORT and all(type(each) in (int, float) for each in value):
        kind = _kind(value)
        array = np.asarray(value, dtype=f"<{kind}")
        return {"dtype": kind, "bdata": b64encode(array.tobytes()).decode()}
    return [_packed(each) for each in value]


def _kind(numbers: list[Any]) -> str:
    """Return the smallest type of plotly's that holds whole numbers as they are; else `f4`."""
    whole = all(type(each) is int for each in numbers) and min(numbers) >= 0
    sizes = (kind for kind, most in _UNSIGNED.items() if max(numbers) <= most)
    return next(sizes, "f4") if whole else "f4"


def _json(value: Any) -> str:
    """Return JSON that can stand in a script element, whatever text is in it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.translate(_ESCAPED | _SEPARATORS)


def _policy(scripts: list[str]) -> str:
    """Return the content security policy that lets these scripts run, and nothing be fetched."""
    digests = (b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    # The parser of HTML reads every line end as "\n", and the hash is of what it reads.
    return _ASSETS.joinpath(name).read_text("utf-8").replace("\r\n", "\n")
