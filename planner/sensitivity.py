"""By how much each source of error moves the step of one layout, the largest effect first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp

from planner.changes import changed
from planner.error_sources import INTERVAL_END, ErrorSource, error_sources, error_table
from planner.result import Drawn, PlannedLayout
from simulator.api import Forecaster
from simulator.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The step with one source of error at the ends of its 80 % interval, all else as forecast."""

    source: str
    low: float
    """Seconds, at the end at which everything is faster."""
    high: float
    origin: str
    """Where the size of the error is from."""

    @property
    def width(self) -> float:
        """Seconds between both ends."""
        return self.high - self.low


def sensitivities(
    scenario: Scenario, base: PlannedLayout, drawn: Drawn | None
) -> tuple[Sensitivity, ...]:
    """Return what each source of error does to the step of a layout of the scenario.

    Constants are followed by a new estimate, whose ratio to the one of the centre is that of the
    step. Of the sources that were `drawn`, those that are a factor on the whole step (of the stack,
    of the layout itself) are beside them.

    Raises:
        InputError: an end of an interval is out of the range of a constant.
    """
    found = [_of(scenario, base, each) for each in error_sources(scenario, error_table())]
    constants = {each.source for each in found}
    if drawn is not None:
        found += [each for each in _factors(base, drawn) if each.source not in constants]
    return tuple(sorted(found, key=lambda each: -each.width))


def _of(scenario: Scenario, base: PlannedLayout, source: ErrorSource) -> Sensitivity:
    end = INTERVAL_END * source.deviation
    low, high = (
        base.step_time * _estimate(scenario, base, source, factor) / base.estimate
        for factor in (-end, end)
    )
    return Sensitivity(source=source.name, low=low, high=high, origin=source.origin)


def _estimate(
    scenario: Scenario, base: PlannedLayout, source: ErrorSource, log_factor: float
) -> float:
    other = changed(scenario, source.change(log_factor))
    return Forecaster.of(other).step_time(base.layout)


def _factors(base: PlannedLayout, drawn: Drawn) -> Iterator[Sensitivity]:
    for name, deviation in drawn.sources.items():
        factor = exp(INTERVAL_END * deviation)
        yield Sensitivity(
            source=name,
            low=base.step_time / factor,
            high=base.step_time * factor,
            origin=drawn.origins.get(name, ""),
        )
