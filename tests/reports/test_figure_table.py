"""The numbers of figures as rows."""

from __future__ import annotations

from typing import Any

import pytest

from reports.charts import Figure
from reports.figure_table import figure_columns, figure_rows
from reports.words import english
from tests.reports import small_figures as small

_BAR = {"row": "stage 1", "kind": "backward", "what": "backward 0", "start": 2.0, "stop": 4.0}


@pytest.mark.parametrize(
    ("figure", "place", "row"),
    [
        (
            small.CHART,
            1,
            {"series": "runs", "x": 2.0, "y": 20.0, "low": 18.0, "high": 22.0, "what": "two"},
        ),
        (small.HISTOGRAM, 1, {"from": 1.0, "to": 2.0, "count": 5}),
        (small.HEAT_MAP, 1, {"from rank": 0, "to rank": 1, "value": 40.0}),
        (small.STACKS, 1, {"bar": "stage 1", "weights": 6.0, "logits": 2.0}),
        (small.TIMELINE, 2, _BAR),
        (
            small.LAYOUT_MAP,
            0,
            {"tp": "1", "pp": "1", "value": None, "why": "does not fit in memory: 4"},
        ),
        (small.TORNADO, 0, {"change": "nodes x2", "low": 1.5, "high": 1.9}),
        (small.DIAGRAM, 1, {"link": "leaf - node1: 50 GB/s", "utilisation": None}),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "title") else None,
)
def test_a_mark_is_a_row(figure: Figure, place: int, row: dict[str, Any]) -> None:
    assert figure_rows(figure)[place] == row


def test_numbers_that_are_not_known_are_not_read_as_zero() -> None:
    columns = {column.title: column.cells for column in figure_columns(small.HEAT_MAP, english)}
    assert columns["value"] == ["-", "40.00", "20.00", "-"]
