"""The layout that a scenario gives to be simulated."""

from __future__ import annotations

from simulator.errors import InputError, Problem
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario


def scenario_layout(scenario: Scenario) -> ParallelLayout:
    """Return the layout that a scenario gives; dp, left out, is what fills the cluster.

    Raises:
        InputError: it gives none, or tp x cp x pp does not divide the cluster.
    """
    layout = scenario.file.layout
    if layout is None:
        raise InputError(
            Problem(
                where=scenario.where,
                key="layout",
                rule="this scenario has no layout to simulate",
                fix="add a [layout] table, or let `traincast plan` find one",
            )
        )
    if "dp" in layout.model_fields_set:
        return layout
    inner, world = layout.tp * layout.cp * layout.pp, scenario.world_size
    if world % inner:
        raise InputError(
            Problem(
                where=scenario.where,
                key="layout",
                found=f"tp {layout.tp} x cp {layout.cp} x pp {layout.pp} = {inner}",
                rule=f"tp x cp x pp must divide the {world} accelerators of the cluster",
                fix="another tp, cp or pp, or another number of nodes",
            )
        )
    return layout.model_copy(update={"dp": world // inner})
