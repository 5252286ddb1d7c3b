"""Result files as records; everything that is wrong in any of them is said at once."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import Any, TypeAlias

from reports.result_files.calibration import CalibrationFile
from reports.result_files.explain import ExplainFile
from reports.result_files.goodput import GoodputFile
from reports.result_files.parts import Result as ResultBase
from reports.result_files.plan import PlanFile
from reports.result_files.step import StepFile
from reports.result_files.sweep import CompareFile, SweepFile
from reports.result_files.trace_comparison import TraceComparisonFile
from reports.result_files.validation import ValidationFile
from reports.result_kinds import FORMAT, WRITERS, ResultKind
from simulator.errors import InputError, Problem
from simulator.files import nearest, parse_record, read_text

MAX_RESULT_BYTES = 200_000_000
"""A timeline of 64 stages and 512 micro-batches takes some megabytes; far more is no result."""
_SHOWN = 20
"""Problems that are shown of one file."""
_FEW_DIGITS = 20
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")

Result: TypeAlias = (
    StepFile
    | PlanFile
    | ExplainFile
    | GoodputFile
    | CompareFile
    | SweepFile
    | ValidationFile
    | CalibrationFile
    | TraceComparisonFile
)

MODELS: Mapping[ResultKind, type[ResultBase]] = {
    ResultKind.STEP: StepFile,
    ResultKind.PLAN: PlanFile,
    ResultKind.EXPLAIN: ExplainFile,
    ResultKind.GOODPUT: GoodputFile,
    ResultKind.COMPARE: CompareFile,
    ResultKind.SWEEP: SweepFile,
    ResultKind.VALIDATION: ValidationFile,
    ResultKind.CALIBRATION: CalibrationFile,
    ResultKind.TRACE_COMPARISON: TraceComparisonFile,
}
"""How each kind is read."""
_ANY_WRITER = "a file that a verb of traincast wrote with --json"
_INSTEAD_OF_TRACE = (
    "the result beside it (traincast simulate SCENARIO --json OUT); a trace opens in "
    "ui.perfetto.dev, and `traincast trace compare` compares it with a real one"
)
_JSON_NAMES = {
    list: "a list",
    str: "text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
}
_SIGNS = {
    ResultKind.EXPLAIN: "what_if",
    ResultKind.PLAN: "searched",
    ResultKind.STEP: "events",
    ResultKind.GOODPUT: "fits",
    ResultKind.COMPARE: "scenarios",
    ResultKind.SWEEP: "keys",
    ResultKind.VALIDATION: "groups",
}
"""A key by which a result is known that was written before results said their kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """A result and the file that it was read from."""

    path: Path
    result: Result

    @property
    def kind(self) -> ResultKind:
        """What it holds."""
        return self.result.kind


def load_results(paths: Iterable[Path | str]) -> tuple[ResultFile, ...]:
    """Return the results in files, in the order given.

    Raises:
        InputError: a file is missing, no JSON, no result, of a newer format, or given twice; one
            problem for everything that is wrong in any of them.
    """
    wanted = tuple(Path(path) for path in paths)
    problems = list(_given_twice(wanted))
    found = []
    for path in dict.fromkeys(wanted):
        try:
            found.append(ResultFile(path=path, result=_load(path)))
        except InputError as error:
            problems += _first(error.problems, str(path))
    if problems:
        raise InputError(*problems)
    return tuple(found)


def _given_twice(paths: Iterable[Path]) -> Iterator[Problem]:
    counts = Counter(path.absolute() for path in paths)
    for path, count in counts.items():
        if count > 1:
            rule, fix = "each result is given once", "leave the others out"
            yield Problem(where=str(path), rule=rule, found=f"{count} times", fix=fix)


def _first(problems: Sequence[Problem], where: str) -> Iterator[Problem]:
    """Yield the problems that are shown of a file, and how many more it has."""
    yield from problems[:_SHOWN]
    if len(problems) > _SHOWN:
        more = len(problems) - _SHOWN
        yield Problem(where=where, rule=f"has {more:,} more problems like these")


def _load(path: Path) -> Result:
    data = _read(path)
    kind = _kind(data, str(path))
    try:
        result = parse_record(MODELS[kind], data, str(path))
    except InputError as error:
        fix = f"write it again: {WRITERS[kind]}"
        problems = (replace(each, fix=each.fix or fix) for each in error.problems)
        raise InputError(*problems) from error
    assert isinstance(result, Result), kind
    return result


def _read(path: Path) -> Mapping[str, Any]:
    where, text = str(path), read_text(path, MAX_RESULT_BYTES)
    try:
        data = json.loads(
            text, object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse_constant
        )
        _check_text(text, data)
    except (ValueError, RecursionError) as error:
        reason = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
        fix = f"{_ANY_WRITER}, whole"
        raise InputError(
            Problem(where=where, rule=f"is not valid JSON: {reason}", fix=fix)
        ) from error
    if _is_trace(data):
        rule = "is a timeline (trace events), which holds no numbers of a result"
        raise InputError(Problem(where=where, rule=rule, fix=_INSTEAD_OF_TRACE))
    if not isinstance(data, dict):
        rule = "must be one JSON object, a result of traincast"
        raise InputError(
            Problem(where=where, rule=rule, found=_JSON_NAMES[type(data)], fix=_ANY_WRITER)
        )
    return data


def _is_trace(data: Any) -> bool:
    """Return whether JSON is in Chrome's trace event format, of `simulate --trace` or Kineto."""
    if isinstance(data, dict):
        return "kind" not in data and isinstance(data.get("traceEvents"), list)
    return isinstance(data, list) and all(
        isinstance(each, dict) and "ph" in each for each in data[:_SHOWN] or [None]
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if twice:
        raise ValueError(f"key {twice[0]!r} stands twice in one object")
    return dict(pairs)


def _finite(digits: str) -> float:
    if not isfinite(value := float(digits)):
        raise ValueError(f"{digits[:_FEW_DIGITS]} is too large for a number")
    return value


def _check_text(text: str, data: Any) -> None:
    """Raise `ValueError` where an escape stands for half a character, which no page can hold."""
    if _HALF_CHARACTER.search(text):
        json.dumps(data, ensure_ascii=False).encode()


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def _kind(data: Mapping[str, Any], where: str) -> ResultKind:
    word = data.get("kind")
    kinds = [kind.value for kind in ResultKind]
    if "kind" not in data:
        rule = "says no kind, so it is no result of this release"
        raise InputError(Problem(where=where, key="kind", rule=rule, fix=_again(data)))
    if word not in kinds:
        fix = nearest(word, kinds) if isinstance(word, str) else f"one of: {', '.join(kinds)}"
        rule = "is no kind of result that a report can be made of"
        raise InputError(Problem(where=where, key="kind", rule=rule, found=repr(word), fix=fix))
    kind, written = ResultKind(word), data.get("format")
    if not isinstance(written, int) or isinstance(written, bool) or not 1 <= written <= FORMAT:
        newer = isinstance(written, int) and written > FORMAT
        fix = "a newer traincast" if newer else f"write it again: {WRITERS[kind]}"
        rule = f"must be a format that this release reads, 1 to {FORMAT}"
        raise InputError(
            Problem(where=where, key="format", rule=rule, found=repr(written), fix=fix)
        )
    return kind


def _again(data: Mapping[str, Any]) -> str:
    """Return how to write a file again that does not say its kind."""
    likely = next((kind for kind, sign in _SIGNS.items() if sign in data), None)
    if likely is not None:
        return f"write it again: {WRITERS[likely]}"
    return f"{_ANY_WRITER}: {', '.join(ResultKind)}"
