"""A result with anything in it replaced or cut off loads or is refused in words; it never fails."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.result_files import ResultKind, load_results
from simulator.errors import InputError
from tests.reports.result_files.made import made

KINDS = (ResultKind.STEP, ResultKind.PLAN, ResultKind.GOODPUT, ResultKind.CALIBRATION)
ODD: tuple[Any, ...] = (None, True, -1, 1e308, 10**400, "", "\ud800", [], [[]], {}, {"": None})


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(data=st.data())
def test_any_value_may_be_wrong(kind: ResultKind, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = made(kind, Path(folder))
        record = json.loads(path.read_text())
        holder, key = place_in(record, data)
        holder[key] = data.draw(st.sampled_from(ODD))
        path.write_text(json.dumps(record))
        said = outcome(path)
    assert said is None or str(path) in said


@settings(max_examples=10)
@given(share=st.floats(min_value=0.0, max_value=0.999))
def test_a_file_that_is_cut_off_is_refused(share: float) -> None:
    with TemporaryDirectory() as folder:
        path = made(ResultKind.STEP, Path(folder))
        text = path.read_text()
        path.write_text(text[: int(share * len(text))])
        said = outcome(path)
    assert said is not None
    assert "is not valid JSON" in said


def place_in(record: Any, data: st.DataObject) -> tuple[Any, Any]:
    """Return a part of a record and a key of it: any of them."""
    while True:
        keys = list(record) if isinstance(record, dict) else list(range(len(record)))
        key = data.draw(st.sampled_from(keys))
        inner = record[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            return record, key
        record = inner


def outcome(path: Path) -> str | None:
    """Return why a file is refused; None where it loads."""
    try:
        load_results([path])
    except InputError as error:
        return str(error)
    return None
