"""Terminal rendering of what the network carried in a step, and of what makes it longer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from reports.quantities import number, percent, plain, seconds
from reports.table import Column, print_heading, print_table, print_text
from simulator.units import GB

_LINKS_SHOWN = 8
_MUTED = "dim"

Record = Mapping[str, Any]


def print_network(console: Console, network: Record, step_time: float) -> None:
    """Print the busiest links, what the step would gain without each cause, and drawn steps."""
    if network["links"]:
        _print_links(console, network["links"])
    if network["causes"]:
        _print_causes(console, network["causes"], step_time)
    drawn = network["drawn_s"]
    if len(drawn) > 1:
        steps = f"{len(drawn)} steps were drawn: {seconds(min(drawn))} to {seconds(max(drawn))}"
        print_text(console, steps, _MUTED)


def _print_links(console: Console, links: list[Record]) -> None:
    shown = links[:_LINKS_SHOWN]
    print_heading(console, "Busiest links of the network (between passes)")
    print_table(
        console,
        [
            Column(title="", cells=[plain(use["name"]) for use in shown], justify="left"),
            Column(title="alike", cells=[f"{use['alike']:,}" for use in shown]),
            Column(
                title="GB/s",
                cells=[number(use["capacity_bytes_per_second"] / GB) for use in shown],
            ),
            Column(title="GB a step", cells=[number(use["carried_bytes"] / GB) for use in shown]),
            Column(title="used", cells=[percent(use["utilisation"]) for use in shown]),
            Column(title="full", cells=[_share(use["full_share"]) for use in shown]),
        ],
    )
    if len(links) > _LINKS_SHOWN:
        print_text(console, f"and {len(links) - _LINKS_SHOWN} kinds of links more", _MUTED)


def _print_causes(console: Console, causes: list[Record], step_time: float) -> None:
    print_heading(console, "What the step would be shorter by without it")
    print_table(
        console,
        [
            Column(title="", cells=[plain(cause["what"]) for cause in causes], justify="left"),
            Column(title="gain", cells=[seconds(cause["seconds"]) for cause in causes]),
            Column(
                title="of the step",
                cells=[percent(cause["seconds"] / step_time) for cause in causes],
            ),
        ],
    )


def _share(share: float | None) -> str:
    return "" if share is None else percent(share)
