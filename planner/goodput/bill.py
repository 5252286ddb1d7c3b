"""What simulated runs cost: accelerator-hours, money, energy, emissions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.energy import NodePower, PowerModel, node_power
from planner.goodput.replicate import Quantiles, over
from planner.goodput.result import EnergyPlan
from planner.goodput.shape import Cause, Played
from simulator.hardware.parts import mean_price
from simulator.hardware.profile import Price
from simulator.results import Breakdown
from simulator.run_file import EnergyFile, RunFile
from simulator.scenario import Scenario
from simulator.units import JOULES_PER_KWH, SECONDS_PER_HOUR

_GRAMS_PER_KG = 1e3
_BUSY = (Cause.USEFUL, Cause.LOST, Cause.DEGRADED)
_POLLING = (Cause.CHECKPOINT, Cause.DETECTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What is paid for."""

    nodes: int
    spares: int
    accelerators: int
    """Of the nodes, spares apart."""

    @property
    def with_spares(self) -> float:
        """Accelerators of nodes and spares."""
        return self.accelerators * (1.0 + self.spares / self.nodes)


def price_of(scenario: Scenario) -> Price:
    """Return what an accelerator-hour costs: the run table's word, or else the profile's."""
    run, known = scenario.file.run or RunFile(), mean_price(scenario.parts)
    changes = {"per_accelerator_hour": run.price, "currency": run.currency}
    return known.model_copy(update={k: v for k, v in changes.items() if v is not None})


def hours_of(played: Sequence[Played], fleet: Fleet) -> Quantiles:
    """Return the accelerator-hours of the runs, spares included."""
    return over(played, lambda run: hours_of_run(run, fleet))


def hours_of_run(run: Played, fleet: Fleet) -> float:
    """Return the accelerator-hours of one run, spares included."""
    return run.wall / SECONDS_PER_HOUR * fleet.with_spares


def times(found: Quantiles, factor: float) -> Quantiles:
    """Return quantiles of a multiple of a quantity."""
    return Quantiles(p10=found.p10 * factor, p50=found.p50 * factor, p90=found.p90 * factor)


def energy_plan(
    scenario: Scenario,
    breakdown: Breakdown,
    played: Sequence[Played],
    fleet: Fleet,
    model: PowerModel,
) -> EnergyPlan:
    """Return power and energy of the runs.

    Nodes train while steps run, lost ones too; they poll while a checkpoint or a hung step holds
    them up; else they idle, as spares always do.
    """
    file = scenario.file.run.energy if scenario.file.run is not None else EnergyFile()
    node = mean_node_power(scenario, breakdown, model)
    machines = over(played, lambda run: _joules(run, node, fleet))
    site = None if file.pue is None else times(machines, file.pue)
    co2 = None
    if file.grid_intensity is not None:
        grams = file.grid_intensity / JOULES_PER_KWH
        co2 = times(site or machines, grams / _GRAMS_PER_KG)
    return EnergyPlan(
        node=node,
        per_accelerator=node.training * fleet.nodes / fleet.accelerators,
        machines=machines,
        site=site,
        co2=co2,
    )


def mean_node_power(scenario: Scenario, breakdown: Breakdown, model: PowerModel) -> NodePower:
    """Return the watts of a node, the mean over all nodes of the cluster."""
    powers = [(part.nodes, node_power(part.profile, breakdown, model)) for part in scenario.parts]
    nodes = sum(count for count, _ in powers)
    return NodePower(
        training=sum(count * power.training for count, power in powers) / nodes,
        waiting=sum(count * power.waiting for count, power in powers) / nodes,
        idle=sum(count * power.idle for count, power in powers) / nodes,
    )


def _joules(run: Played, node: NodePower, fleet: Fleet) -> float:
    busy = sum(run.seconds[cause] for cause in _BUSY)
    polling = sum(run.seconds[cause] for cause in _POLLING)
    idle = run.wall - busy - polling
    one = busy * node.training + polling * node.waiting + idle * node.idle
    return fleet.nodes * one + fleet.spares * run.wall * node.idle
