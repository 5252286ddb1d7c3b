"""A sweep file: a scenario, and the values that some of its keys take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from simulator.errors import InputError, Problem
from simulator.files import FileRecord, read_record

MAX_CASES = 10_000
"""Combinations of a sweep."""
_TABLES = "sweep.over", "sweep.together"

Values = Annotated[tuple[Any, ...], Field(min_length=1)]


class Method(StrEnum):
    """How each combination is forecast."""

    PLAN = "plan"
    """The fastest layout that fits, as `traincast plan` finds it."""
    SIMULATE = "simulate"
    """The scenario's `[layout]`, played by the event engine."""
    ESTIMATE = "estimate"
    """The scenario's `[layout]` in closed form, without contention."""


class Quantity(StrEnum):
    """What the picture of a sweep shows."""

    TOKENS_PER_SECOND = "tokens_per_s"
    """Of all ranks."""
    STEP_TIME = "step_time_s"
    MFU = "mfu"
    DAYS = "days"
    """For `job.tokens`."""
    COST = "cost"
    """For `job.tokens`; the profile has to have a price."""
    RUN_DAYS = "run_days_p50"
    """With failures and checkpoints; the scenario has to have a `[run]` table."""
    RUN_COST = "run_cost"
    """The same, and the profile has to have a price."""


class SweepTable(FileRecord):
    """What is swept."""

    scenario: str
    """A scenario file, relative to this one. It may leave out what the sweep gives."""
    what: Method = Method.PLAN
    over: dict[str, Values] = Field(default_factory=dict)
    """Key of the scenario -> its values; the keys are crossed with each other. The first is the x
    axis of the picture."""
    together: tuple[dict[str, Values], ...] = ()
    """Keys whose values change together, the first of each, then the second of each; each table of
    them is crossed with the rest. They are named by the value of their first key."""
    shown: Quantity = Quantity.TOKENS_PER_SECOND
    """What the picture shows, with its interval."""

    @field_validator("over", mode="before")
    @classmethod
    def _is_dotted(cls, value: Any) -> Any:
        return _dotted(value) if isinstance(value, dict) else value

    @field_validator("together", mode="before")
    @classmethod
    def _are_dotted(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        return tuple(_dotted(group) if isinstance(group, dict) else group for group in value)


class SweepFile(FileRecord):
    """A sweep as it stands in its TOML file."""

    title: str = ""
    sweep: SweepTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Keys that change together: one value of each a point."""

    keys: tuple[str, ...]
    points: tuple[tuple[Any, ...], ...]

    def tables(self) -> Iterator[dict[str, Any]]:
        """Yield what each point sets."""
        for point in self.points:
            yield dict(zip(self.keys, point, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A sweep whose axes are known to be sound; its values are not checked yet."""

    file: SweepFile
    where: str
    scenario: Path

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The keys of `over`, then the tables of `together`, as they stand in the file."""
        table = self.file.sweep
        crossed = (
            Axis(keys=(key,), points=tuple((value,) for value in values))
            for key, values in table.over.items()
        )
        zipped = (
            Axis(keys=tuple(group), points=tuple(zip(*group.values(), strict=True)))
            for group in table.together
        )
        return (*crossed, *zipped)

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Yield the keys and values of each combination; the last axis changes fastest."""
        for tables in product(*(tuple(axis.tables()) for axis in self.axes)):
            yield {key: value for table in tables for key, value in table.items()}


def load_sweep(path: Path | str) -> Sweep:
    """Return the sweep in a TOML file.

    Raises:
        InputError: with everything that is wrong in the file itself.
    """
    file = read_record(SweepFile, path)
    return sweep_of(file, str(path), Path(path).parent / file.sweep.scenario)


def sweep_of(file: SweepFile, where: str, scenario: Path) -> Sweep:
    """Return a sweep of a scenario file. Raises `InputError` where its axes are not sound."""
    if problems := tuple(_problems(file.sweep, where)):
        raise InputError(*problems)
    return Sweep(file=file, where=where, scenario=scenario)


def _problems(table: SweepTable, where: str) -> Iterator[Problem]:
    """Yield what is wrong with the axes: none, twice the same, uneven, too many points."""
    groups = [{key: values} for key, values in table.over.items()] + list(table.together)
    if not any(groups):
        fix = '[sweep.over] with "cluster.nodes" = [8, 16], say'
        yield Problem(where=where, key="sweep", rule="names no key to sweep", fix=fix)
    keys = [key for group in groups for key in group]
    for key in dict.fromkeys(key for key in keys if keys.count(key) > 1):
        rule = f"stands in two of the tables {' and '.join(_TABLES)}"
        yield Problem(where=where, key=key, rule=rule, fix="give its values once")
    for group in groups:
        yield from _point_problems(group, where)
    points = prod(min(map(len, group.values())) for group in groups if group)
    if points > MAX_CASES:
        rule = f"must have at most {MAX_CASES:,} combinations"
        found, fix = f"{points:,}", "fewer values, or several sweeps"
        yield Problem(where=where, key="sweep", found=found, rule=rule, fix=fix)


def _point_problems(group: Mapping[str, tuple[Any, ...]], where: str) -> Iterator[Problem]:
    lengths = {key: len(values) for key, values in group.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{key} {length}" for key, length in lengths.items())
        rule = "keys that change together need equally many values"
        yield Problem(where=where, key=_TABLES[1], found=found, rule=rule)
        return
    points = list(zip(*group.values(), strict=True))
    for point in points:
        if points.count(point) > 1:
            found = ", ".join(map(repr, point))
            rule, fix = "has the same value twice", "give it once"
            yield Problem(where=where, key=", ".join(group), found=found, rule=rule, fix=fix)
            return


def _dotted(table: Mapping[str, Any], inside: str = "") -> dict[str, Any]:
    """Return tables in tables as one, with dotted keys: both ways of writing them are read.

    >>> _dotted({"cluster": {"nodes": [8, 16]}, "job.precision": ["bf16"]})
    {'cluster.nodes': (8, 16), 'job.precision': ('bf16',)}
    """
    found: dict[str, Any] = {}
    for key, value in table.items():
        match value:
            case dict():
                found |= _dotted(value, f"{inside}{key}.")
            case list():
                found[inside + key] = tuple(value)
            case _:
                found[inside + key] = value
    return found
