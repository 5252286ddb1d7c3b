"""The combinations of a sweep as scenarios, all of them checked before the first is forecast."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from planner.changes import NAMED, set_keys
from planner.sweep.identity import NamedFile, key_of, named_files
from planner.sweep.sweep_file import Method, Sweep
from simulator.errors import InputError, Problem
from simulator.files import parse_record, read_record, read_toml
from simulator.scenario import (
    LoadNamed,
    Named,
    Scenario,
    ScenarioFile,
    at_folder,
    load_named,
    read_parts,
)

_SHOWN = 2
"""Combinations that a problem names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One scenario to be forecast, and how."""

    number: int
    """Its place, from 0."""
    values: Mapping[str, Any]
    """What tells it from the others: keys of the sweep with their values."""
    what: Method
    scenario: Scenario
    files: tuple[NamedFile, ...]
    """Files that are read only when it is forecast."""
    code: str
    """Digest of the program that is to forecast it."""
    key: str
    """Digest of all that its forecast depends on."""

    def __str__(self) -> str:
        return in_words(self.values)


def cases_of(sweep: Sweep) -> tuple[Case, ...]:
    """Return every combination of a sweep, in order.

    Raises:
        InputError: with all that is wrong in any of them, each problem once, and which
            combinations have it.
    """
    table = read_toml(sweep.scenario)
    reader = _Reader(sweep=sweep, table=table)
    found: list[Case] = []
    wrong: dict[Problem, list[Mapping[str, Any]]] = {}
    combinations = list(sweep.combinations())
    for number, values in enumerate(combinations):
        try:
            scenario = reader.scenario(values)
            found.append(case_of(scenario, sweep.file.sweep.what, number, values))
        except InputError as error:
            for problem in error.problems:
                wrong.setdefault(problem, []).append(values)
    if wrong:
        raise InputError(
            *(
                _blamed(problem, having, sweep, len(combinations))
                for problem, having in wrong.items()
            )
        )
    return tuple(found)


def case_of(scenario: Scenario, what: Method, number: int, values: Mapping[str, Any]) -> Case:
    """Return a scenario as a case.

    Raises:
        InputError: its layout is asked for, and it has none; a file that it names is not there.
    """
    if what is not Method.PLAN and scenario.file.layout is None:
        raise InputError(
            Problem(
                where=scenario.where,
                key="layout",
                rule=f"a scenario without a [layout] has nothing to {what}",
                fix='a [layout] table, or the best layout (sweep.what = "plan")',
            )
        )
    files = named_files(scenario)
    code, key = key_of(scenario, what, files)
    return Case(
        number=number,
        values=values,
        what=what,
        scenario=scenario,
        files=files,
        code=code,
        key=key,
    )


def scenario_cases(paths: tuple[str, ...], what: Method) -> tuple[Case, ...]:
    """Return scenario files as cases, each named by its file.

    Raises:
        InputError: with all that is wrong in any of them.
    """
    found: list[Case] = []
    problems: list[Problem] = []
    for number, path in enumerate(paths):
        try:
            scenario = _unchecked(path)
            found.append(case_of(scenario, what, number, {"scenario": path}))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return tuple(found)


def _unchecked(path: str) -> Scenario:
    """Return a scenario file; what its machine lacks is told in its row."""
    folder = Path(path).resolve().parent
    return read_parts(at_folder(read_record(ScenarioFile, path), folder), path, folder)


def in_words(values: Mapping[str, Any]) -> str:
    """Return a combination as a person names it.

    >>> in_words({"cluster.nodes": 8, "search.tp": [4, 8]})
    'cluster.nodes 8, search.tp [4, 8]'
    """
    return ", ".join(f"{key} {value}" for key, value in values.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads the scenario with some of its keys set; what it names is read once."""

    sweep: Sweep
    table: Mapping[str, Any]
    known: dict[str, Any] = field(default_factory=dict)

    def scenario(self, values: Mapping[str, Any]) -> Scenario:
        """Return the scenario of one combination; what its machine lacks is not checked."""
        path, where = self.sweep.scenario, str(self.sweep.scenario)
        folder = path.resolve().parent
        table = copy.deepcopy(dict(self.table))
        for key, value in values.items():
            if not _is_named(key):
                _set(table, key, value, where)
        file = at_folder(parse_record(ScenarioFile, table, where), folder)
        scenario = read_parts(file, where, folder, self._load())
        inside = {key: value for key, value in values.items() if _is_named(key)}
        return set_keys(scenario, inside) if inside else scenario

    def _load(self) -> LoadNamed:
        def load(named: Named, name: str, folder: Path | None) -> Any:
            key = f"{named} {name}"
            if key not in self.known:
                self.known[key] = load_named(named, name, folder)
            return self.known[key]

        return load


def _is_named(key: str) -> bool:
    """Return whether a key is one of a file that the scenario names."""
    first, dot, _ = key.partition(".")
    return first in NAMED and bool(dot)


def _set(table: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Set a dotted key of nested tables and lists; tables that are missing are made."""
    inside: Any = table
    *path, last = key.split(".")
    for number, part in enumerate(path):
        if isinstance(inside, list) and part.isdecimal() and int(part) < len(inside):
            inside = inside[int(part)]
        elif isinstance(inside, dict):
            inside = inside.setdefault(part, {})
        if not isinstance(inside, dict | list):
            rule = f"{'.'.join(path[: number + 1])} is no table in this scenario"
            raise InputError(Problem(where=where, key=key, rule=rule, found=repr(inside)))
    if isinstance(inside, dict):
        inside[last] = value
        return
    if not last.isdecimal() or int(last) >= len(inside):
        rule = f"{'.'.join(path)} is a list of {len(inside)}; its entries are numbered from 0"
        raise InputError(Problem(where=where, key=key, rule=rule, found=last))
    inside[int(last)] = value


def _blamed(problem: Problem, having: list[Mapping[str, Any]], sweep: Sweep, total: int) -> Problem:
    """Return a problem of combinations: at the sweep's key where it is one of a swept value."""
    swept = [key for axis in sweep.axes for key in axis.keys]
    at_sweep = any(_concerns(problem.key, key) for key in swept)
    shown = "; ".join(in_words(values) for values in having[:_SHOWN])
    more = ", ..." if len(having) > _SHOWN else ""
    each = f"in all {total}" if len(having) == total else f"in {len(having)} of {total}"
    return replace(
        problem,
        where=sweep.where if at_sweep else problem.where,
        rule=f"{problem.rule} ({each} combinations: {shown}{more})",
    )


def _concerns(key: str, swept: str) -> bool:
    """Return whether a problem at `key` lies in the value of a swept key."""
    inside = swept.partition(".")[2] if _is_named(swept) else swept
    return any(key == name or key.startswith(f"{name}.") for name in (swept, inside))
