"""A scenario with some of its values, or of what it names, changed: key by key, checked as files.

Keys are paths: those of the scenario file (`job.`, `cluster.`, `search.`), and of the files that
it names: `accelerator.`, `node.`, `fabric.`, `price.` of the profile, `constants.` of its
constants, `stack.` and `model.`. A part `*` stands for every key of a table. Of a mixed cluster a
key of the profile or its constants changes the machines of every part, and a factor of
`cluster.nodes` the nodes of every part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from simulator.aims import ChangeValue
from simulator.errors import InputError, Problem
from simulator.files import nearest, parse_record
from simulator.hardware.constants import FittedConstants
from simulator.hardware.profile import Profile, ProfileFile, load_profile
from simulator.scenario import Scenario, ScenarioFile, machine_problems
from simulator.workload.load import load_model
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack, load_stack

Change = Mapping[str, ChangeValue]
_MACHINE = ("accelerator", "node", "fabric", "price")
_FILE = ("cluster", "job", "layout", "search")
NAMED = (*_MACHINE, "constants", "model", "stack")
"""First parts of the keys of what a scenario names."""
_OF_PROFILE = (*_MACHINE, "constants")
_NODES = "cluster.nodes"
_PARTS = (*_FILE, *NAMED)
_FACTOR = re.compile(r"x\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
_QUANTITY = re.compile(r"\s*([-+\d.e]+)\s*(\S.*)")
_NAMES = {"cluster.profile": load_profile, "job.stack": load_stack, "model": load_model}
"""Keys of files: the whole record is read anew."""


def changed(scenario: Scenario, change: Change, name: str = "") -> Scenario:
    """Return the scenario with every key of `change` set, or multiplied where its value is "x2".

    Whatever a changed file would be refused for is refused here. Names of files come first, so
    that other keys change what these hold.

    Raises:
        InputError: with all that is wrong with the change; `name` says which change it is.
    """
    found = set_keys(scenario, change, name)
    where = _place(scenario, name)
    if problems := [replace(each, where=where) for each in machine_problems(found)]:
        raise InputError(*problems)
    return found


def set_keys(scenario: Scenario, change: Change, name: str = "") -> Scenario:
    """Return what `changed` does, whether or not the machine has what it then asks for.

    Raises:
        InputError: a key or its value is wrong.
    """
    where = _place(scenario, name)
    found, problems = _named(scenario, change, where)
    for part in _PARTS:
        inside = {k: v for k, v in change.items() if k.split(".")[0] == part and k != "model"}
        if not inside:
            continue
        try:
            edit = _Edit(scenario=found, part=part, where=where)
            found = edit.of_machines(inside) if part in _OF_PROFILE else edit.of(inside)
        except InputError as error:
            problems += error.problems
    problems += (_unknown(key, where) for key in change if key.split(".")[0] not in _PARTS)
    if problems:
        raise InputError(*problems)
    return found


def _place(scenario: Scenario, name: str) -> str:
    return f"{scenario.where}: what_if {name!r}" if name else scenario.where


def _named(scenario: Scenario, change: Change, where: str) -> tuple[Scenario, list[Problem]]:
    """Return the scenario with what it names read anew where the name changes."""
    updates: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, load in _NAMES.items():
        if key not in change:
            continue
        try:
            read = load(str(change[key]), relative_to=Path(scenario.where).parent)
        except InputError as error:
            problems += (replace(p, where=where, key=key) for p in error.problems)
            continue
        updates[key.split(".")[-1]] = read
    return scenario.model_copy(update=updates), problems


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    """Keys of one of the records that a scenario is made of."""

    scenario: Scenario
    part: str
    where: str

    def of(self, change: Change) -> Scenario:
        """Return the scenario with these keys changed."""
        record, kind, keeps = self._record()
        data = record.model_dump(mode="json")
        for key, value in change.items():
            path = key.split(".") if keeps else key.split(".")[1:]
            self._set(data, path, value, key)
            if key == _NODES and _factor(value) is not None:
                for part in data["cluster"]["part"]:
                    self._set(part, ["nodes"], value, key)
        if keeps == "scenario":
            data |= {"model": self.scenario.file.model}
        return self._with(parse_record(kind, data, self.where), change)

    def of_machines(self, change: Change) -> Scenario:
        """Return the scenario with these keys of the profile of each part changed."""
        scenario, found = self.scenario, []
        for profile in (scenario.profile, *scenario.others):
            alone = scenario.model_copy(update={"profile": profile})
            found.append(replace(self, scenario=alone).of(change).profile)
        return scenario.model_copy(update={"profile": found[0], "others": tuple(found[1:])})

    def _record(self) -> tuple[BaseModel, type[BaseModel], str]:
        """Return the record, its type, and where the key names its first table too, what it is."""
        scenario = self.scenario
        match self.part:
            case "constants":
                return scenario.profile.constants, FittedConstants, ""
            case "model":
                return scenario.model.spec, ModelSpec, ""
            case "stack":
                return scenario.stack, Stack, ""
            case part if part in _MACHINE:
                return scenario.profile.machine, ProfileFile, "profile"
            case _:
                return scenario.file, ScenarioFile, "scenario"

    def _with(self, record: Any, change: Change) -> Scenario:
        """Return the scenario with its part in the place of the old one."""
        scenario = self.scenario
        match record:
            case FittedConstants():
                return _on(scenario, change, constants=record)
            case ProfileFile():
                return _on(scenario, change, machine=record)
            case ModelSpec():
                model = replace(scenario.model, spec=record)
                return scenario.model_copy(update={"model": model})
            case Stack():
                return scenario.model_copy(update={"stack": record})
            case _:
                return scenario.model_copy(update={"file": record})

    def _set(self, data: Any, path: list[str], value: ChangeValue, key: str) -> None:
        """Set one key in a table of JSON values."""
        for table, last in self._tables(data, path, key):
            table[last] = _new(table.get(last), value, self.where, key)

    def _tables(self, data: Any, path: list[str], key: str) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the tables that a path ends in, with the last part of it."""
        first, *rest = path or [""]
        if not isinstance(data, dict) or (first != "*" and first not in data):
            raise InputError(_missing(self.where, key, first, data))
        for part in data if first == "*" else [first]:
            if rest:
                yield from self._tables(data[part], rest, key)
            else:
                yield data, part


def _on(scenario: Scenario, change: Change, **records: Any) -> Scenario:
    """Return the scenario on a changed machine, whose hash says that it is another one."""
    profile: Profile = scenario.profile
    text = profile.sha256 + repr(sorted(change.items()))
    digest = sha256(text.encode()).hexdigest()
    other = profile.model_copy(update={**records, "sha256": digest})
    return scenario.model_copy(update={"profile": other})


def _new(old: Any, value: ChangeValue, where: str, key: str) -> Any:
    """Return the new value of a key: `value`, or the old one times its factor."""
    factor = _factor(value)
    return value if factor is None else _times(old, factor, where, key)


def _factor(value: ChangeValue) -> float | None:
    """Return the factor that a value such as "x2" is, None where it is a value of its own."""
    found = _FACTOR.fullmatch(value.strip()) if isinstance(value, str) else None
    return None if found is None else float(found[1])


def _times(old: Any, factor: float, where: str, key: str) -> Any:
    """Return every number in a JSON value times a factor; whole numbers stay whole."""
    if isinstance(old, dict):
        return {name: _times(inner, factor, where, key) for name, inner in old.items()}
    if isinstance(old, str) and (parts := _QUANTITY.fullmatch(old)):
        return f"{float(parts[1]) * factor!r} {parts[2]}"
    if isinstance(old, bool) or not isinstance(old, int | float):
        rule = "a factor needs a number to multiply, and this key has none"
        fix = "the new value itself"
        raise InputError(Problem(where=where, key=key, found=repr(old), rule=rule, fix=fix))
    new = old * factor
    if isinstance(old, int) and new != int(new):
        rule = f"must be a whole number, and {old} x {factor:g} = {new:g}"
        raise InputError(Problem(where=where, key=key, rule=rule, fix="another factor"))
    return int(new) if isinstance(old, int) else new


def _missing(where: str, key: str, part: str, data: Any) -> Problem:
    keys = sorted(data) if isinstance(data, dict) else []
    rule = f"there is no {part!r} here" if keys else f"this machine or job has nothing at {part!r}"
    return Problem(where=where, key=key, rule=rule, fix=nearest(part, keys) if keys else "")


def _unknown(key: str, where: str) -> Problem:
    first, names = key.partition(".")[0], [*_PARTS]
    rule = f"no key starts with {first!r}"
    return Problem(where=where, key=key, rule=rule, fix=nearest(first, names))
