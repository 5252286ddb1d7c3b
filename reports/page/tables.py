"""The tables of a document as data frames, for CSV and Parquet files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from reports.figure_table import figure_rows
from reports.page.document import Document

if TYPE_CHECKING:
    import pandas as pd

_NO_NAME = re.compile(r"[^\w]+")


def table_frames(document: Document) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield every table as text, and every figure as numbers, each with a name for its file.

    Tables hold what the page shows; figures hold all digits.
    """
    import pandas as pd

    seen: Counter[str] = Counter()
    for part in document.parts:
        for section in part.sections:
            if section.columns:
                titles = _unlike(section.titles)
                frame = pd.DataFrame(
                    dict(zip(titles, (c.cells for c in section.columns), strict=True))
                )
                yield _named(f"{part.name}-{section.title}", seen), frame
        for figure in part.figures:
            rows = figure_rows(figure)
            if rows:
                yield _named(f"{part.name}-figure-{figure.name}", seen), pd.DataFrame(rows)


def _named(text: str, seen: Counter[str]) -> str:
    name = _NO_NAME.sub("-", text.lower()).strip("-")[:80]
    seen[name] += 1
    return name if seen[name] == 1 else f"{name}-{seen[name]}"


def _unlike(titles: tuple[str, ...]) -> list[str]:
    """Return titles of columns that all differ; one that is empty or repeated gets a number."""
    seen: Counter[str] = Counter()
    found = []
    for place, title in enumerate(titles):
        name = title or f"column {place + 1}"
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return found
