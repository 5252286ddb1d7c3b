"""Terminal rendering of what the network carried in a step, and of what makes it longer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from reports.quantities import counted, number, percent, plain, seconds
from reports.styles import Style
from reports.table import (
    Column,
    fit_columns,
    needed_width,
    print_heading,
    print_table,
    print_text,
)
from simulator.units import GB

_LINKS_SHOWN = 8
_HINT = "see --json"
_ARROW = " -> "
_SHORTEST = 24
"""Characters that a name has at least; for less, columns are left out."""
_START = 3
"""One in so many of the characters that are kept of a name is of its start."""

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
        print_text(console, steps, Style.MUTED)
    for note in network["notes"]:
        print_text(console, note, Style.MUTED)


def _print_links(console: Console, links: list[Record]) -> None:
    shown = links[:_LINKS_SHOWN]
    print_heading(console, "Busiest links of the network (full: storage and others included)")
    capacities = [number(use["capacity_bytes_per_second"] / GB) for use in shown]
    carried = [number(use["carried_bytes"] / GB) for use in shown]
    figures = [
        Column(title="alike", cells=[f"{use['alike']:,}" for use in shown], rank=2),
        Column(title="GB/s", cells=capacities),
        Column(title="GB a step", cells=carried, rank=3),
        Column(title="used", cells=[percent(use["utilisation"]) for use in shown]),
        Column(title="full", cells=[_share(use["full_share"]) for use in shown], rank=1),
    ]
    _print_named(console, [use["name"] for use in shown], figures)
    if len(links) > _LINKS_SHOWN:
        more = counted(len(links) - _LINKS_SHOWN, "kind")
        print_text(console, f"and {more} of links more", Style.MUTED)


def _print_causes(console: Console, causes: list[Record], step_time: float) -> None:
    print_heading(console, "What the step would be shorter by without it")
    figures = [
        Column(title="gain", cells=[seconds(cause["seconds"]) for cause in causes]),
        Column(
            title="of the step",
            cells=[percent(cause["seconds"] / step_time) for cause in causes],
            rank=1,
        ),
    ]
    _print_named(console, [cause["what"] for cause in causes], figures)


def _print_named(console: Console, names: Sequence[str], figures: Sequence[Column]) -> None:
    """Print figures under names, which are shortened where they leave too little room."""
    short = Column(title=" " * _SHORTEST, cells=[""] * len(names))
    kept, _ = fit_columns([short, *figures], console.width)
    room = max(_SHORTEST, console.width - needed_width(kept) + _SHORTEST)
    cells = [shortened(plain(name), room) for name in names]
    print_table(console, [Column(title="", cells=cells, justify="left"), *figures], _HINT)


def shortened(name: str, width: int) -> str:
    """Return a name in at most `width` characters; of a link both ends can still be told.

    Names differ at their ends more than at their starts, so that more of the end is kept.

    >>> shortened("rack12/node3/nic0 -> rack12/leaf1", 24)
    'rac…3/nic0 -> rac…/leaf1'
    """
    if cell_len(name) <= width:
        return name
    one, arrow, other = name.partition(_ARROW)
    if not arrow:
        return _cut(name, width)
    half = (width - len(_ARROW)) // 2
    free = max(half, width - len(_ARROW) - cell_len(one))
    kept = _cut(other, free)
    return f"{_cut(one, width - len(_ARROW) - cell_len(kept))}{_ARROW}{kept}"


def _cut(text: str, width: int) -> str:
    """Return a text without its middle, so that it takes at most `width` cells."""
    keep = len(text)
    found = text
    while cell_len(found) > width and keep > 0:
        keep -= 1
        start = keep // _START
        found = f"{text[:start]}…{text[len(text) - keep + start :]}"
    return found


def _share(share: float | None) -> str:
    return "" if share is None else percent(share)
