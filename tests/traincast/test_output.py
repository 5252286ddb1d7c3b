"""JSON as verbs write it: any value survives, columns stand on one line, nothing is infinite."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.commands.output import as_json

PLAIN = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
FINITE = PLAIN.filter(lambda value: value not in (float("inf"), float("-inf")))
VALUES = st.recursive(
    FINITE, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(st.dictionaries(st.text(), VALUES) | st.lists(VALUES))
def test_what_is_written_is_read_back(record: dict[str, Any] | list[Any]) -> None:
    assert json.loads(as_json(record)) == record


def test_a_column_takes_one_line_however_long() -> None:
    text = as_json({"times": [0.5] * 1000, "stages": [{"stage": 0}, {"stage": 1}], "empty": {}})
    assert text.splitlines()[1:3] == [f'  "times": [{", ".join(["0.5"] * 1000)}],', '  "stages": [']
    assert len(text.splitlines()) == 12


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_never_written(number: float, *, compact: bool) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json({"a": [1.0, number]}, compact=compact)
