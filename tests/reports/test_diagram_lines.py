"""What is written on the lines of a diagram."""

from __future__ import annotations

from dataclasses import replace

from reports.charts import Box, Cable, Diagram
from reports.diagram_lines import LineText, line_texts, thickness

_BOXES = (
    Box(label="leaf", kind="switch", x=0.5, y=1.0),
    *(Box(label=f"node{n}", kind="unit", x=n / 4, y=0.0) for n in range(5)),
)


def _diagram(*labels: str) -> Diagram:
    """Return a leaf with a cable a label to nodes below it."""
    cables = tuple(
        Cable(one=0, other=1 + n, used=None, text="", label=label, capacity=100.0)
        for n, label in enumerate(labels)
    )
    return Diagram(title="", boxes=_BOXES, cables=cables, unit="")


def test_the_same_text_between_two_rows_is_written_once_with_its_count() -> None:
    assert list(line_texts(_diagram("50 GB/s", "50 GB/s", "25 GB/s"))) == [
        LineText(lines=("2 x 50 GB/s", "1 x 25 GB/s"), x=None, y=0.5)
    ]


def test_different_texts_stand_on_their_lines_at_different_heights() -> None:
    texts = list(line_texts(_diagram("1", "2", "3", "4", "5")))
    assert [text.lines for text in texts] == [("1",), ("2",), ("3",), ("4",), ("5",)]
    assert [round(1 - text.y, 2) for text in texts] == [0.5, 0.65, 0.35, 0.5, 0.65]


def test_a_line_is_as_thick_as_the_root_of_its_share_of_the_widest() -> None:
    wide, narrow = _diagram("", "").cables
    assert thickness([wide, replace(narrow, capacity=25.0)]) == [1.0, 0.5]
