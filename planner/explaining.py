"""Why a scenario's plan is as it is, and what would change it: the questions in their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.planning import plan
from planner.result import Plan
from planner.search import Progress
from planner.sensitivity import Sensitivity, sensitivities
from planner.variants import OUTER_AXES, Varied, varied_scenario
from planner.what_if import WhatIf, what_ifs
from planner.what_if_file import check_changes
from planner.worthwhile import Worthwhile, restricted, worthwhile
from simulator.aims import ChangeValue, UncertaintyFile
from simulator.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A plan with what would change it; both are empty where nothing fits."""

    plan: Plan
    what_ifs: tuple[WhatIf, ...]
    worthwhile: Worthwhile | None
    """None where no kind of layouts was asked for."""
    sensitivities: tuple[Sensitivity, ...] = ()
    """How each source of error moves the step of the best layout; empty where nothing fits, and
    for a mixed cluster."""


def explain(
    scenario: Scenario,
    wanted: Mapping[str, ChangeValue] | None = None,
    *,
    progress: Progress | None = None,
    mapped: bool = False,
) -> Explanation:
    """Return the plan of a scenario, its best layouts compared under the uncertain constants.

    And how each change moves its step; where `wanted` names a kind of layouts, what would make one
    of it the best. Of a search over several jobs or clusters the best one is asked about. If
    `mapped`, the plan has its map.

    Raises:
        InputError: the scenario breaks a rule, or a change names what is not there.
    """
    check_changes(scenario)
    if wanted:
        restricted(scenario, wanted)
    # Nothing is drawn for a mixed cluster, whose machines have constants of their own.
    drawing = None if scenario.mixed else scenario.file.uncertainty or UncertaintyFile()
    file = scenario.file.model_copy(update={"uncertainty": drawing})
    found = plan(scenario.model_copy(update={"file": file}), mapped=mapped)
    if not found.layouts:
        return Explanation(plan=found, what_ifs=(), worthwhile=None)
    base = found.layouts[0]
    one = _fixed(scenario, base.varied)
    base = replace(base, varied=Varied())
    changes = what_ifs(one, base, progress)
    kind = None if not wanted else worthwhile(one, base, wanted, progress)
    moved = () if one.mixed else sensitivities(one, base, found.drawn)
    return Explanation(plan=found, what_ifs=tuple(changes), worthwhile=kind, sensitivities=moved)


def _fixed(scenario: Scenario, varied: Varied) -> Scenario:
    """Return the one job and cluster of a search over several that is asked about."""
    one = varied_scenario(scenario, varied)
    search = one.file.search.model_copy(update=dict.fromkeys(OUTER_AXES))
    return one.model_copy(update={"file": one.file.model_copy(update={"search": search})})
