"""Every result file loads as it was written, and says everything that is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.result_files import FORMAT, ResultKind, load_results
from reports.result_files.loading import MAX_RESULT_BYTES, MODELS
from simulator.errors import InputError
from tests.reports.result_files.made import MADE, made


@pytest.mark.parametrize("kind", MADE)
def test_what_a_verb_writes_is_read_back(kind: ResultKind, tmp_path: Path) -> None:
    path = made(kind, tmp_path)
    (found,) = load_results([path])
    written = json.loads(path.read_text())
    read = found.result.model_dump(mode="json")
    assert (found.kind, written["kind"], written["format"]) == (kind, kind.value, FORMAT)
    assert _without_new(written, read) == read


def _without_new(written: Any, read: Any) -> Any:
    """Return what was written without keys that reports do not read, and with defaults."""
    if isinstance(read, dict) and isinstance(written, dict):
        return {key: _without_new(written.get(key, read[key]), read[key]) for key in read}
    if isinstance(read, list) and isinstance(written, list):
        return [_without_new(one, two) for one, two in zip(written, read, strict=True)]
    return written


def test_every_kind_has_a_model() -> None:
    assert set(MODELS) == set(ResultKind)


def refused(tmp_path: Path, text: str) -> str:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_results([path])
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"kind": "step"', "is not valid JSON"),
        ('{"kind": "plan", "kind": "step"}', "key 'kind' stands twice in one object"),
        ('{"kind": "step", "format": 1, "x": NaN}', "NaN is no number of JSON"),
        ('{"kind": "step", "format": 1, "x": -1e999}', "-1e999 is too large for a number"),
        ('{"kind": "step", "format": 1, "x": ' + "9" * 5000 + "}", "is not valid JSON"),
        ('{"kind": "step", "title": "\\ud800"}', "is not valid JSON: 'utf-8' codec can't encode"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ("\0", "must be a text file"),
        ("[" * 100_000, "nested too deeply"),
        ("[1]", "must be one JSON object, a result of traincast (found a list)"),
        ('{"traceEvents": [], "displayTimeUnit": "ms"}', "is a timeline (trace events)"),
        ('[{"ph": "X", "ts": 0}]', "fix: the result beside it"),
        ('{"kind": "step", "format": 1}', "fix: write it again: traincast simulate"),
        ('{"searched": {}}', "write it again: traincast plan SCENARIO --json"),
        ('{"a": 1}', "a file that a verb of traincast wrote with --json: step, plan"),
        ('{"kind": "steps", "format": 1}', "did you mean 'step'?"),
        ('{"kind": 7, "format": 1}', "one of: step, plan"),
        ('{"kind": "step", "format": 2}', "1 to 1 (found 2)\n    fix: a newer traincast"),
        ('{"kind": "step", "format": true}', "write it again: traincast simulate"),
    ],
)
def test_what_is_no_result_is_refused_with_the_way_out(
    text: str, words: str, tmp_path: Path
) -> None:
    assert words in refused(tmp_path, text)


def test_all_faults_of_all_files_are_said_at_once(tmp_path: Path) -> None:
    wrong = _changed(tmp_path, lambda step: step["step"].update(step_time_s="long", mfu=None))
    missing = tmp_path / "none.json"
    with pytest.raises(InputError) as caught:
        load_results([wrong, missing, missing])
    found = {(problem.where, problem.key) for problem in caught.value.problems}
    assert found == {
        (str(wrong), "step.step_time_s"),
        (str(wrong), "step.mfu"),
        (str(missing), ""),
    }
    assert len(caught.value.problems) == 4


def test_a_column_of_faults_is_counted_not_listed(tmp_path: Path) -> None:
    wrong = _changed(tmp_path, lambda step: step["timeline"].update(start_s=["x"] * 1000))
    with pytest.raises(InputError) as caught:
        load_results([wrong])
    *shown, last = caught.value.problems
    assert {problem.key for problem in shown} == {f"timeline.start_s.{i}" for i in range(20)}
    assert last.rule == "has 980 more problems like these"


def test_what_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(MAX_RESULT_BYTES + 1)  # A hole, which takes no space.
    with pytest.raises(InputError, match="must be at most 200000000 bytes"):
        load_results([path])


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda step: step["timeline"]["stage"].append(0), "columns must be equally long"),
        (lambda step: step["timeline"]["name"].__setitem__(0, 99), "must be places in streams"),
        (lambda step: step["memory_curves"][0]["time_s"].pop(), "columns must be equally long"),
        (lambda step: step["timeline"]["stage"].__setitem__(0, 10**9), "stage must be 0 to 65535"),
        (lambda step: step["memory"]["stages"].clear(), "must have at least 1 entry"),
    ],
)
def test_columns_that_do_not_belong_together_are_refused(
    change: Callable[[dict[str, Any]], object], rule: str, tmp_path: Path
) -> None:
    path = _changed(tmp_path, change)
    with pytest.raises(InputError, match=rule):
        load_results([path])


def test_a_step_without_newer_parts_still_loads(tmp_path: Path) -> None:
    path = _changed(tmp_path, lambda step: [step.pop(key) for key in ("timeline", "operators")])
    (found,) = load_results([path])
    assert found.kind is ResultKind.STEP


def _changed(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    step = json.loads(made(ResultKind.STEP, tmp_path).read_text())
    change(step)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(step))
    return path
