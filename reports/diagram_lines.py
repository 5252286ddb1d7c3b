"""How the lines of a diagram are drawn: how thick, and what is written on them and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.charts import Cable, Diagram

_MOST_LABELS = 24
"""Lines of a picture up to which each may have its bandwidth written on it; more are thinner."""
_ONCE = 3
"""Different texts between two rows up to which each is written once, beside the lines."""
_ALONG = 0.35, 0.5, 0.65
"""Where along neighbouring lines their texts stand, so that they do not run into each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineText:
    """What is written on lines."""

    lines: tuple[str, ...]
    """Below each other."""
    x: float | None
    """None: beside all lines, at the left edge."""
    y: float


def thickness(cables: Sequence[Cable]) -> list[float]:
    """Return from 0 (thin) to 1 for each: the root of its share of the widest; many are thinner.

    >>> cable = Cable(one=0, other=1, used=None, text="", capacity=100e9)
    >>> thickness([cable]), thickness([])
    ([1.0], [])
    """
    widest = max((cable.capacity for cable in cables), default=0.0) or 1.0
    crowd = min(1.0, _MOST_LABELS / max(1, len(cables)))
    return [crowd * (cable.capacity / widest) ** 0.5 for cable in cables]


def line_texts(diagram: Diagram) -> Iterator[LineText]:
    """Yield what is written on the lines: between two rows the same text once, with its count."""
    rows: dict[tuple[float, float], list[Cable]] = {}
    for cable in diagram.cables:
        low, high = sorted((diagram.boxes[cable.one].y, diagram.boxes[cable.other].y))
        rows.setdefault((low, high), []).append(cable)
    for (low, high), cables in rows.items():
        texts = Counter(cable.label for cable in cables if cable.label)
        if 0 < len(texts) <= _ONCE and len(cables) > 1:
            lines = tuple(f"{count} x {text}" for text, count in texts.items())
            yield LineText(lines=lines, x=None, y=(low + high) / 2)
        elif len(cables) <= _MOST_LABELS:
            yield from _on_lines(diagram, cables)


def _on_lines(diagram: Diagram, cables: Sequence[Cable]) -> Iterator[LineText]:
    for number, cable in enumerate(each for each in cables if each.label):
        one, other = diagram.boxes[cable.one], diagram.boxes[cable.other]
        share = _ALONG[(number + 1) % len(_ALONG)]
        x, y = one.x + share * (other.x - one.x), one.y + share * (other.y - one.y)
        yield LineText(lines=(cable.label,), x=x, y=y)
