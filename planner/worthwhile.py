"""What would make a layout of a kind, such as tp = 16, the best one; and why it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log2
from typing import Any

from planner.changes import changed
from planner.explain import extra_seconds, why_it_lost
from planner.result import PlannedLayout
from planner.what_if import best_of
from planner.what_if_file import Lever, what_if_table
from simulator.aims import ChangeValue
from simulator.errors import InputError, Problem
from simulator.files import nearest, parse_record
from simulator.parallel.layout import ParallelLayout
from simulator.results import Category
from simulator.scenario import Scenario, SearchFile

HALVINGS = 5
"""Bisections of the log of a factor: from 32 down to steps of 11 %."""
Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """By how much one lever has to move for layouts of the kind to win."""

    name: str
    keys: tuple[str, ...]
    tried: float
    """The extreme factor."""
    factor: float | None
    """The least factor found at which they win; None: not by this alone."""
    loses_at: float | None
    """The largest factor below it at which they do not; the truth is between the two."""
    reason: str = ""
    """Why they do not win, where that is not the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worthwhile:
    """The best layout of a kind against the best of all, and what would change that."""

    wanted: Mapping[str, ChangeValue]
    best: PlannedLayout
    found: PlannedLayout | None
    """The best of the kind; None where none is legal and fits."""
    reason: str
    """In words: why it is not the best, or why there is none."""
    extra: Mapping[Category, float] | None
    """Seconds that it takes more than the best, by category."""
    thresholds: tuple[Threshold, ...]


def wanted_of(text: str, where: str) -> dict[str, ChangeValue]:
    """Return the fields of a kind of layouts as written: "tp=16", "tp=16,recompute=full".

    Raises:
        InputError: a word without a value, or one that names no axis of the search.
    """
    axes = [name for name in SearchFile.model_fields if name in ParallelLayout.model_fields]
    found: dict[str, ChangeValue] = {}
    problems: list[Problem] = []
    for word in text.split(","):
        name, equals, value = (part.strip() for part in word.partition("="))
        if name in axes and equals and value:
            if found.setdefault(name, value) != value:
                rule, fix = (
                    f"one kind has one {name}, and it is {found[name]} before",
                    "one of them",
                )
                problems.append(
                    Problem(where=where, key="--layout-key", found=word, rule=rule, fix=fix)
                )
            continue
        rule = "must be an axis of the search and its value, such as tp=16"
        fix = nearest(name, axes)
        problems.append(Problem(where=where, key="--layout-key", found=word, rule=rule, fix=fix))
    if problems:
        raise InputError(*problems)
    return found


def worthwhile(
    scenario: Scenario,
    best: PlannedLayout,
    wanted: Mapping[str, ChangeValue],
    told: Told | None = None,
) -> Worthwhile:
    """Return how the best layout of a kind does against all others, and which levers turn that.

    Each lever of the shipped table is moved by its largest factor, then bisected where the kind
    wins there; both sides are searched anew at every factor.

    Raises:
        InputError: the search table has no such layouts.
    """
    kind = restricted(scenario, wanted)
    answer = best_of(kind)
    found = answer.layouts[0] if answer.layouts else None
    levers = what_if_table().lever
    thresholds = []
    for number, lever in enumerate(levers, start=1):
        thresholds.append(_threshold(scenario, kind, lever))
        if told is not None:
            told(number, len(levers))
    return Worthwhile(
        wanted=wanted,
        best=best,
        found=found,
        reason=why_it_lost(best, found) if found else "no layout of this kind is legal and fits",
        extra=extra_seconds(best.breakdown, found.breakdown) if found else None,
        thresholds=tuple(thresholds),
    )


def restricted(scenario: Scenario, wanted: Mapping[str, ChangeValue]) -> Scenario:
    """Return the scenario whose search has layouts of one kind only.

    Raises:
        InputError: a value that its axis cannot have.
    """
    data = scenario.file.search.model_dump(mode="json")
    data |= {name: [_typed(value)] for name, value in wanted.items()}
    if "tp" in wanted:
        data["max_tp"] = None if data["max_tp"] is None else max(data["max_tp"], data["tp"][0])
    search = parse_record(SearchFile, data, f"{scenario.where}: --layout-key")
    file = scenario.file.model_copy(update={"search": search})
    return scenario.model_copy(update={"file": file})


def _typed(value: ChangeValue) -> ChangeValue:
    """Return a word of the command line as the number or flag that it is."""
    if isinstance(value, str) and value.isdigit():
        return int(value)
    return {"true": True, "false": False}.get(str(value), value)


def _threshold(scenario: Scenario, kind: Scenario, lever: Lever) -> Threshold:
    """Return the least factor of a lever at which layouts of a kind win, by bisection.

    Where nothing of the kind fits at the largest factor, smaller ones are tried.
    """

    def at(power: float) -> tuple[bool, str]:
        return _wins(scenario, kind, lever, 2.0**power)

    most = log2(lever.most)
    won, reason = at(most)
    while not won and reason and abs(most) > 1:
        most = most - 1 if most > 0 else most + 1
        won, reason = at(most)
    common: dict[str, Any] = {"name": lever.name, "keys": lever.change, "tried": 2.0**most}
    if not won:
        return Threshold(**common, factor=None, loses_at=None, reason=reason)
    lost_at, won_at = _bisected(lambda power: at(power)[0], most, whole=lever.whole)
    return Threshold(**common, factor=2.0**won_at, loses_at=2.0**lost_at)


def _bisected(wins: Callable[[float], bool], most: float, *, whole: bool) -> tuple[float, float]:
    """Return the power of 2 nearest to 0 at which `wins` is true, behind one at which it is not."""
    lost_at, won_at = 0.0, most
    for _ in range(HALVINGS):
        middle = (lost_at + won_at) / 2
        if whole:
            middle = float(int(middle))
        if middle in (lost_at, won_at):
            break
        if wins(middle):
            won_at = middle
        else:
            lost_at = middle
    return lost_at, won_at


def _wins(scenario: Scenario, kind: Scenario, lever: Lever, factor: float) -> tuple[bool, str]:
    """Return whether a layout of the kind is as good as every other at a factor; else why not."""
    change = lever.at(factor)
    try:
        ours, others = (best_of(changed(each, change)) for each in (kind, scenario))
    except InputError as error:
        return False, error.problems[0].rule
    if not ours.layouts:
        return False, "no layout of this kind is legal and fits"
    if not others.layouts:
        return True, ""
    return ours.layouts[0].tokens_per_second >= others.layouts[0].tokens_per_second, ""
