"""By what the constants of a forecast may be off: sources of error, and how large each is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import exp, log1p
from statistics import NormalDist

from pydantic import Field

from planner.changes import Change, changed
from planner.shipped import read_shipped
from simulator.errors import InputError, Problem
from simulator.files import FileRecord, nearest
from simulator.hardware.constants import FitRecord
from simulator.scenario import Scenario

ERROR_FOLDER = "uncertainty"
ERRORS = "errors"
"""The shipped table."""
UNIT_NORMAL = NormalDist()
MEDIAN_ERROR = UNIT_NORMAL.inv_cdf(0.75)
"""Median of the absolute value of a unit normal."""
INTERVAL_END = UNIT_NORMAL.inv_cdf(0.9)
"""Half-width of its 80 % interval."""


class ErrorFile(FileRecord):
    """One source of error: constants that are off by one factor together."""

    name: str
    times: tuple[str, ...] = ()
    """Keys that the factor multiplies."""
    rates: tuple[str, ...] = ()
    """Keys that it divides."""
    block: str = ""
    """Block of constants whose fit says how far off they are; `{precision}` is the job's."""
    assumed: float = Field(ge=0, le=1)
    """Standard deviation of the log of the factor where no fit says it."""
    reference: str


class LayoutErrorFile(FileRecord):
    """Of the error that layouts do not share."""

    share: float = Field(ge=0)
    """Of a stack's `spread`, where it has no `layout_spread`."""
    reference: str


class ErrorTable(FileRecord):
    """All sources of error."""

    name: str
    title: str
    error: tuple[ErrorFile, ...] = Field(min_length=1)
    layouts: LayoutErrorFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSource:
    """A source of error on one machine and stack."""

    name: str
    times: tuple[str, ...]
    rates: tuple[str, ...]
    deviation: float
    """Standard deviation of the log of the factor."""
    origin: str

    def change(self, log_factor: float) -> Change:
        """Return the change of the constants at one factor; above 0 everything takes longer."""
        slower, faster = f"x{exp(log_factor):.12g}", f"x{exp(-log_factor):.12g}"
        return dict.fromkeys(self.times, slower) | dict.fromkeys(self.rates, faster)


def error_table() -> ErrorTable:
    """Return the shipped table of sources."""
    return read_shipped(ErrorTable, ERROR_FOLDER, ERRORS, "", "")


def error_sources(scenario: Scenario, table: ErrorTable) -> tuple[ErrorSource, ...]:
    """Return the sources whose constants this machine and stack have.

    Raises:
        InputError: `uncertainty.spread` names none of them.
    """
    asked = scenario.file.uncertainty
    given = asked.spread if asked is not None else {}
    names = [each.name for each in table.error]
    wrong = [name for name in given if name not in names]
    if wrong:
        raise InputError(*(_unknown(scenario, name, names) for name in wrong))
    return tuple(_sources(scenario, table, given))


def layout_deviation(scenario: Scenario, table: ErrorTable) -> tuple[float, str]:
    """Return the deviation of the log of a step's error that layouts do not share; its origin."""
    fit = scenario.stack.fit
    if fit.layout_spread is not None:
        return log1p(fit.layout_spread) / INTERVAL_END, fit.layout_spread_source
    spread = table.layouts.share * fit.spread
    origin = f"assumed: {table.layouts.share:g} of the stack's spread. {table.layouts.reference}"
    return log1p(spread) / INTERVAL_END, origin


def _sources(
    scenario: Scenario, table: ErrorTable, given: Mapping[str, float]
) -> Iterator[ErrorSource]:
    records = {record.what: record for record in scenario.profile.constants.fit}
    precision = scenario.file.job.precision.value
    for each in table.error:
        times = tuple(key for key in each.times if _is_there(scenario, key))
        rates = tuple(key for key in each.rates if _is_there(scenario, key))
        if not times and not rates:
            continue
        record = records.get(each.block.format(precision=precision))
        deviation, origin = _deviation(each, record)
        if each.name in given:
            deviation, origin = given[each.name], "uncertainty.spread of the scenario"
        yield ErrorSource(
            name=each.name, times=times, rates=rates, deviation=deviation, origin=origin
        )


def _deviation(each: ErrorFile, record: FitRecord | None) -> tuple[float, str]:
    """Return how far off the constants are, and where that comes from."""
    if record is not None and record.held_out_median_error is not None:
        error = record.held_out_median_error
        return log1p(
            error
        ) / MEDIAN_ERROR, f"{record.what}: median {error:.1%} off on held-out points"
    if record is not None and record.uncertainty:
        squares = [value**2 for value in record.uncertainty.values()]
        return (sum(squares) / len(squares)) ** 0.5, f"{record.what}: deviation of its fit"
    return each.assumed, f"assumed. {each.reference}"


def _is_there(scenario: Scenario, key: str) -> bool:
    """Return whether the machine and stack have a constant that is not 0."""
    try:
        other = changed(scenario, {key: "x2"})
    except InputError:
        return False
    profile, stack = scenario.profile, scenario.stack
    same = (other.profile.machine, other.profile.constants, other.stack)
    return same != (profile.machine, profile.constants, stack)


def _unknown(scenario: Scenario, name: str, names: list[str]) -> Problem:
    key, rule = f"uncertainty.spread.{name}", "there is no such source of error"
    return Problem(where=scenario.where, key=key, rule=rule, fix=nearest(name, names))
