"""What the step would be if: the same layout, and the best one, under each of a list of changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.changes import changed
from planner.planning import plan
from planner.result import Plan, PlannedLayout
from planner.what_if_file import changes_of, check_changes, what_if_table
from simulator.aims import LayoutChoice, WhatIfFile
from simulator.api import Forecaster
from simulator.errors import InputError
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario

Told = Callable[[int, int], None]
"""Called with the number of questions that are answered, and that of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A layout under a change; or why there is none."""

    layout: ParallelLayout | None
    reason: str = ""
    """Why there is none."""
    step_time: float = 0.0
    """Seconds, simulated."""
    speedup: float = 0.0
    """Tokens/s over those of the best layout without the change."""
    accelerators: int = 0
    peak_memory: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """One change, with the layout that is best without it and with that which is best under it."""

    name: str
    change: dict[str, str]
    same: Outcome
    best: Outcome
    warnings: tuple[str, ...] = ()
    """Of the changed forecast, beside those of the scenario."""


def what_ifs(scenario: Scenario, base: PlannedLayout, told: Told | None = None) -> list[WhatIf]:
    """Return how each change of the shipped list and of the scenario moves the step.

    Raises:
        InputError: a change of the scenario's own names what is not there.
    """
    check_changes(scenario)
    asked = changes_of(scenario, what_if_table())
    found = []
    for number, each in enumerate(asked, start=1):
        found.append(_what_if(scenario, base, each))
        if told is not None:
            told(number, len(asked))
    return found


def best_of(scenario: Scenario) -> Plan:
    """Return a plan of the best layout alone."""
    search = scenario.file.search.model_copy(
        update={"top": 1, "simulate": 1, "pareto": None, "choice": LayoutChoice.CENTRE}
    )
    file = scenario.file.model_copy(update={"search": search, "uncertainty": None})
    return plan(scenario.model_copy(update={"file": file}))


def _what_if(scenario: Scenario, base: PlannedLayout, asked: WhatIfFile) -> WhatIf:
    change = {key: str(value) for key, value in asked.change.items()}
    try:
        other = changed(scenario, asked.change, asked.name)
    except InputError as error:
        reason = error.problems[0].rule
        nothing = Outcome(layout=None, reason=reason)
        return WhatIf(name=asked.name, change=change, same=nothing, best=nothing)
    found = best_of(other)
    own = {*found.provenance.warnings, *_scale_notes(scenario, other)}
    own -= {*Forecaster.of(scenario).provenance.warnings}
    return WhatIf(
        name=asked.name,
        change=change,
        same=_same(other, base),
        best=_best(found, base),
        warnings=tuple(sorted(own)),
    )


def _scale_notes(scenario: Scenario, other: Scenario) -> tuple[str, ...]:
    """Return a warning where the stack's factor was fitted on the old accelerator alone."""
    old, new = scenario.profile.constants.accelerator, other.profile.constants.accelerator
    scale = other.stack.fit.scale
    if old not in scale or new in scale or old == new:
        return ()
    return (
        f"{other.stack.name} was fitted on {old}, where compute takes {scale[old]:g} times as long "
        f"as its kernels alone, and not on {new}: the gain is too large if it does there too",
    )


def _same(scenario: Scenario, base: PlannedLayout) -> Outcome:
    """Return the layout of `base` as it is, with as many replicas as there are accelerators for."""
    layout, world = base.layout, scenario.world_size
    inner = layout.tp * layout.cp * layout.pp
    if world % inner:
        reason = f"tp x cp x pp = {inner} does not divide {world} accelerators"
        return Outcome(layout=None, reason=reason)
    layout = layout.model_copy(update={"dp": world // inner})
    cast = Forecaster.of(scenario)
    try:
        cast.check(layout)
    except InputError as error:
        return Outcome(layout=None, reason=error.problems[0].rule)
    limit = scenario.file.search.memory_fraction * scenario.profile.accelerator.memory
    if cast.peak_memory(layout) > limit:
        return Outcome(layout=None, reason="does not fit in memory")
    result = cast.simulate(layout, spans=False)
    return Outcome(
        layout=layout,
        step_time=result.step_time,
        speedup=result.tokens_per_second / base.tokens_per_second,
        accelerators=world,
        peak_memory=result.peak_memory,
    )


def _best(found: Plan, base: PlannedLayout) -> Outcome:
    if not found.layouts:
        return Outcome(layout=None, reason=found.beyond or "no layout is legal and fits")
    best = found.layouts[0]
    return Outcome(
        layout=best.layout,
        step_time=best.step_time,
        speedup=best.tokens_per_second / base.tokens_per_second,
        accelerators=best.accelerators,
        peak_memory=best.peak_memory,
    )
