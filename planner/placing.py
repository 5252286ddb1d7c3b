"""The better order of the ranks of a scenario: searched by traffic, judged by the step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.placement_bytes import step_bytes
from planner.placement_score import Goal, PlacementScore, order_at
from planner.placement_search import search_places
from planner.placement_traffic import Demand
from planner.search import Progress
from simulator.api import Forecaster
from simulator.cost.network.network import Network
from simulator.parallel.layout import Axis, ParallelLayout
from simulator.scenario import Scenario
from simulator.topology.graph import IntArray
from simulator.topology.network_file import NetworkFile
from simulator.topology.places import Places
from simulator.topology.routing import Router

SEARCHED = "searched"
_SAME = 1e-9
"""Part of a step time by which two are told apart: what rounding leaves is far below."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedStep:
    """An order of ranks, what it puts on the network, and the step that it makes."""

    places: Places
    score: PlacementScore
    step_time: float
    """Seconds, simulated."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placing:
    """The order that a scenario has, the one that was found, and which of them to keep."""

    layout: ParallelLayout
    goal: Goal
    bytes_of: Mapping[Axis, float]
    """Bytes that a rank sends in a step along each axis."""
    before: PlacedStep
    """In the scenario's order."""
    found: PlacedStep
    """In the order that asks least of the network."""
    evaluated: int
    """Orders that were looked at."""

    @property
    def is_better(self) -> bool:
        """Whether the order found makes the step shorter, or as long with less of the goal."""
        before, found = self.before, self.found
        if abs(found.step_time - before.step_time) > _SAME * before.step_time:
            return found.step_time < before.step_time
        return found.score.key(self.goal) < before.score.key(self.goal)

    @property
    def kept(self) -> PlacedStep:
        """The better order of the two; its step is never the longer one."""
        return self.found if self.is_better else self.before

    @property
    def gain(self) -> float:
        """Part of the step time that the order kept saves."""
        return 1 - self.kept.step_time / self.before.step_time


def place(
    scenario: Scenario,
    layout: ParallelLayout,
    *,
    goal: Goal = Goal.BUSIEST_LINK,
    budget: int,
    progress: Progress | None = None,
) -> Placing:
    """Return a better order of the ranks of a layout, `budget` orders looked at.

    The search compares orders by the traffic of the axes, one after the other. Both orders are then
    simulated under all the scenario's conditions, and the step decides.

    Raises:
        InputError: the cluster or the layout breaks a rule, or ranks cannot reach each other.
    """
    networked = _networked(scenario)
    forecaster = Forecaster.of(networked)
    forecaster.check(layout, scenario.where)
    network, file = forecaster.conditions.network, networked.file.cluster.network
    assert network is not None, "it was given one"
    assert file is not None, "it was given one"
    assert isinstance(network.routes, Router), "conditions route by it"
    bytes_of = step_bytes(forecaster, layout)
    demand = Demand(router=network.routes, layout=layout, bytes_of=bytes_of)
    searched = search_places(demand, goal=goal, budget=budget, progress=progress)
    size = scenario.profile.node.accelerators
    orders = {file.rank_order: network.places, SEARCHED: searched.places.accelerators}
    before, found = (
        PlacedStep(
            places=Places(order=order, accelerators=places, node_size=size),
            score=order_at(demand, places).score,
            step_time=_step_time(forecaster, network, places, layout),
        )
        for order, places in orders.items()
    )
    return Placing(
        layout=layout,
        goal=goal,
        bytes_of=bytes_of,
        before=before,
        found=found,
        evaluated=searched.evaluated,
    )


def _networked(scenario: Scenario) -> Scenario:
    """Return a scenario with a network: where it describes none, that of its profile."""
    file = scenario.file
    if file.cluster.network is not None:
        return scenario
    cluster = file.cluster.model_copy(update={"network": NetworkFile()})
    return scenario.model_copy(update={"file": file.model_copy(update={"cluster": cluster})})


def _step_time(
    forecaster: Forecaster, network: Network, places: IntArray, layout: ParallelLayout
) -> float:
    """Return the simulated step time with ranks in other places, seconds."""
    conditions = replace(forecaster.conditions, network=network.placed(places))
    return forecaster.under(conditions).simulate(layout, spans=False).step_time
