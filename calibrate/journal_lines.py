"""The bytes of a journal as lines: which are whole, which are broken, which are there twice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from calibrate.points import key_of
from calibrate.records import FORMAT, Header, Line, Record, Status
from simulator.errors import InputError, Problem

REPEATABLE = (Status.TIMEOUT, Status.FAILED, Status.NOISY)
"""What a later record of the same point replaces: `--retry` measures it again."""
_LINE: TypeAdapter[Line] = TypeAdapter(Line)
_UPGRADE = "upgrade traincast"
_MAX_PROBLEMS = 5
"""Of one line; a line of another version has as many as it has keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawLine:
    """One line of the file without its end; `number` counts from 1."""

    number: int
    data: bytes
    ended: bool
    """Whether a newline follows; only the last line can lack it."""

    @property
    def whole(self) -> bool:
        """Whether it is a JSON object: a line that was cut or overwritten is not."""
        try:
            return isinstance(json.loads(self.data), dict)
        except (ValueError, RecursionError):
            return False


def split_lines(data: bytes) -> tuple[RawLine, ...]:
    """Return the lines that are not blank; zero bytes are not blank."""
    parts = data.split(b"\n")
    last = len(parts) - 1
    return tuple(
        RawLine(number=index + 1, data=part, ended=index < last)
        for index, part in enumerate(parts)
        if part.strip()
    )


def parse_lines(lines: Sequence[RawLine], path: Path) -> tuple[Line, ...]:
    """Return whole lines as records.

    Raises:
        InputError: lines that no version or only a later version of traincast writes.
    """
    parsed: list[Line] = []
    problems: list[Problem] = []
    for line in lines:
        where = f"{path}, line {line.number}"
        later = _later_format(line)
        if later:
            rule = f"this version of traincast reads format {FORMAT}"
            problem = Problem(where=where, key="format", rule=rule, found=later, fix=_UPGRADE)
            raise InputError(problem)
        try:
            parsed.append(_LINE.validate_json(line.data))
        except ValidationError as error:
            problems.extend(_problems(where, error))
    if problems:
        raise InputError(*problems)
    return tuple(parsed)


def without_repeats(lines: Sequence[Line]) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    """Return the lines that count, in order, and notes on those that do not.

    A record that is there twice counts once, and one that was lost or too noisy no longer counts
    when a later record of the same point is there.
    """
    last = {
        key_of(line.point): index for index, line in enumerate(lines) if isinstance(line, Record)
    }
    kept: list[Line] = []
    seen: set[str] = set()
    twice = retried = 0
    for index, line in enumerate(lines):
        if isinstance(line, Header):
            kept.append(line)
            continue
        text = line.model_dump_json()
        if line.status in REPEATABLE and last[key_of(line.point)] != index:
            retried += 1
        elif text in seen:
            twice += 1
        else:
            kept.append(line)
            seen.add(text)
    notes = [f"{twice} records are there twice and count once"] if twice else []
    notes += [f"{retried} lost or noisy points were measured again"] if retried else []
    return tuple(kept), tuple(notes)


def _later_format(line: RawLine) -> str:
    """Return the format that a header names where it is a later one; else nothing."""
    version = json.loads(line.data).get("format")
    return str(version) if isinstance(version, int) and version > FORMAT else ""


def _problems(where: str, error: ValidationError) -> list[Problem]:
    return [
        Problem(
            where=where,
            key=".".join(str(part) for part in item["loc"]),
            rule=str(item["msg"])[:1].lower() + str(item["msg"])[1:],
        )
        for item in error.errors(include_url=False)[:_MAX_PROBLEMS]
    ]
