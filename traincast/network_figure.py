"""The picture of a scenario's network, coloured by what a simulated step makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from simulator.conditions import conditions_of
from simulator.cost.network.network import Network
from simulator.errors import InputError, Problem
from simulator.results import StepResult
from simulator.scenario import Scenario

if TYPE_CHECKING:
    from reports.topology_figure import Picture


def check_network_figure(scenario: Scenario, path: Path | str) -> None:
    """Raise `InputError` where a scenario has no network to draw, or `path` names no picture."""
    from reports.drawing.files import figure_suffix

    figure_suffix(path)
    _network(scenario)


def draw_network(scenario: Scenario, result: StepResult, path: Path | str) -> None:
    """Write the picture of the network of a simulated step; each line shows its fullest link.

    Raises:
        InputError: the scenario has no network, or the name ends with neither .png nor .svg.
    """
    from reports.drawing.files import save_figure
    from reports.report_figures.network import topology_diagrams
    from simulator.link_use import link_utilisation

    topology = _network(scenario).topology
    used = link_utilisation(result.links, topology, result.step_time)
    save_figure(topology_diagrams(topology, used), path)


def network_pictures(scenario: Scenario, result: StepResult) -> tuple[Picture, ...]:
    """Return the pictures of the network of a simulated step; none where it has no network."""
    from reports.topology_figure import topology_pictures
    from simulator.link_use import link_utilisation

    network = conditions_of(scenario).network
    if network is None:
        return ()
    used = link_utilisation(result.links, network.topology, result.step_time)
    return topology_pictures(network.topology, used)


def _network(scenario: Scenario) -> Network:
    network = conditions_of(scenario).network
    if network is None:
        raise InputError(
            Problem(
                where=scenario.where,
                key="--figure",
                found="no [cluster.network]",
                rule="without it no fabric ever holds up a NIC, and there is nothing to draw",
                fix="add a [cluster.network] table, if only an empty one: it takes the profile's",
            )
        )
    return network
