"""What would make something fit where nothing does: more nodes, other machines, other keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.changes import changed
from planner.hints import Hint
from planner.pools import pool_of
from planner.result import Remedy
from planner.variants import OWN, Variant
from planner.what_if_file import changes_of, what_if_table
from simulator.api import Forecaster
from simulator.errors import InputError
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import MAX_ACCELERATORS, Scenario

DOUBLINGS = 6
"""Of the cluster: up to 64 times its nodes."""


def remedies(scenario: Scenario, hints: tuple[Hint, ...]) -> tuple[Remedy, ...]:
    """Return what was tried by itself and whether anything fits then.

    That is each hint, twice the memory, the next machine, and the least doubling of the nodes.
    """
    by_key = (_tried(hint.text, _with(scenario, hint)) for hint in hints)
    return (*by_key, *_other_machines(scenario), *_more_nodes(scenario))


def _with(scenario: Scenario, hint: Hint) -> Scenario:
    """Return the scenario with what a hint says."""
    file = scenario.file
    update: dict[str, Any] = {
        "search": file.search.model_copy(update=dict(hint.search)),
        "job": file.job.model_copy(update=dict(hint.job)),
    }
    found = scenario.model_copy(update={"file": file.model_copy(update=update)})
    return found if not hint.stack else changed(found, {"job.stack": hint.stack})


def _other_machines(scenario: Scenario) -> Iterator[Remedy]:
    """Yield the changes of the shipped list that change memory: more of it, another machine."""
    for each in changes_of(scenario, what_if_table()):
        if any(key in ("accelerator.memory", "cluster.profile") for key in each.change):
            try:
                yield _tried(each.name, changed(scenario, each.change, each.name))
            except InputError:
                continue


def _more_nodes(scenario: Scenario) -> Iterator[Remedy]:
    """Yield the least of 2, 4, 8 ... times the nodes on which something fits, or the last one."""
    nodes = scenario.file.cluster.nodes
    per_node = scenario.world_size // nodes
    last: Remedy | None = None
    for power in range(1, DOUBLINGS + 1):
        more = nodes * 2**power
        if more * per_node > MAX_ACCELERATORS or scenario.mixed:
            break
        try:
            last = _tried(f"cluster.nodes = {more}", changed(scenario, {"cluster.nodes": more}))
        except InputError:
            continue
        if last.fits:
            break
    if last is not None:
        yield last


def _tried(what: str, scenario: Scenario) -> Remedy:
    """Return whether anything fits in a scenario; else what its smallest layout needs."""
    try:
        found = smallest(scenario)
    except InputError:
        found = None
    if found is None:
        return Remedy(what=what, fits=False, layout=None, peak_memory=None)
    fits, layout, peak = found
    return Remedy(what=what, fits=fits, layout=layout, peak_memory=peak)


def smallest(scenario: Scenario) -> tuple[bool, ParallelLayout, float] | None:
    """Return whether any layout fits, and one that does or the one that needs least; None: none."""
    varied = Variant(number=0, varied=OWN, scenario=scenario, forecaster=Forecaster.of(scenario))
    feasible = pool_of(varied).feasible
    layouts = feasible.fitting or feasible.nearest
    if not layouts:
        return None
    layout = layouts[0]
    return bool(feasible.fitting), layout, varied.forecaster.peak_memory(layout)
