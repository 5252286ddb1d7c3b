"""Terminal rendering of a topology: what it is made of, its tiers, and routes on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from reports.quantities import counted, number, plain, seconds
from reports.section import figures, words
from reports.styles import Style
from reports.table import print_heading, print_pairs, print_table, print_text
from simulator.units import GB

Record = dict[str, Any]
_MOST_LINKS = 40
"""Links of a route that are shown; the JSON has all."""
_NONE = "-"


def print_topology(console: Console, record: Record) -> None:
    """Print a topology and the routes that were asked for."""
    print_text(console, plain(record["title"]), Style.TITLE)
    console.print()
    print_pairs(console, list(_facts(record)))
    print_heading(console, "Cables")
    print_table(console, _cables(record))
    if record["tiers"]:
        print_heading(console, "Tiers of switches")
        print_table(console, _tiers(record))
    for route in record["routes"]:
        _print_route(console, route)
    note = "GB/s in one direction; of NICs and the fabric, what large messages achieve."
    print_text(console, note, Style.MUTED)


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    units, width = record["units"], record["accelerators_per_unit"]
    yield "accelerators", f"{record['accelerators']:,}: {counted(units, 'unit')} of {width}"
    devices = (f"{count} x {kind}" for kind, count in record["devices_per_unit"].items())
    yield "a unit", ", ".join([*devices, counted(record["ports_per_unit"], "port")])
    half, per = record["half_to_half_bandwidth"], record["accelerators"] / 2
    if half:
        halves = "units" if units > 1 else "accelerators"
        text = f"{_rate(half)} GB/s, {_rate(half / per)} an accelerator"
        yield "bisection", f"{text} (first half of the {halves} to the second)"
    if record["tiers"]:
        at_least = "" if record["all_switches_looked_at"] else "at least "
        passed = record["switches_passed_at_most"]
        yield "diameter", f"{at_least}{passed} switch{'' if passed == 1 else 'es'} of the fabric"
        yield "switches reduce", "yes (SHARP)" if record["switches_reduce"] else "no"


def _cables(record: Record) -> list[Any]:
    rows = [
        (where, cable)
        for where, key in (
            ("a unit", "unit_cables"),
            ("ports", "port_cables"),
            ("fabric", "fabric_cables"),
        )
        for cable in record[key]
    ]
    return [
        words("of", [where for where, _ in rows]),
        words("between", [cable["ends"] for _, cable in rows]),
        figures("cables", [f"{cable['count']:,}" for _, cable in rows]),
        figures("GB/s each", [_rate(cable["bandwidth"]) for _, cable in rows]),
    ]


def _tiers(record: Record) -> list[Any]:
    tiers = record["tiers"]
    return [
        figures("tier", [str(tier["tier"]) for tier in tiers]),
        figures("switches", [f"{tier['switches']:,}" for tier in tiers]),
        figures("from below GB/s", [_rate(tier["bandwidth_from_below"]) for tier in tiers]),
        figures("across GB/s", [_rate(tier["bandwidth_across"]) for tier in tiers], 1),
        figures("to above GB/s", [_rate(tier["bandwidth_to_above"]) for tier in tiers]),
        figures("oversubscription", [_ratio(tier["oversubscription"]) for tier in tiers]),
    ]


def _print_route(console: Console, route: Record) -> None:
    print_heading(console, f"{plain(route['from'])} to {plain(route['to'])}")
    links = route["links"]
    if not links:
        print_text(console, "the same accelerator")
        return
    print_table(
        console,
        [
            words("link", [link["link"] for link in links[:_MOST_LINKS]]),
            figures("GB/s", [_rate(link["bandwidth"]) for link in links[:_MOST_LINKS]]),
            figures("share", [f"{link['share']:.2%}" for link in links[:_MOST_LINKS]]),
        ],
    )
    if len(links) > _MOST_LINKS:
        print_text(console, f"and {len(links) - _MOST_LINKS} more; see --json", Style.MUTED)
    print_pairs(
        console,
        [
            ("alone", f"{_rate(route['bandwidth'])} GB/s"),
            ("links passed", number(route["hops"], 2)),
            ("latency", seconds(route["latency_s"])),
        ],
    )


def _rate(value: float) -> str:
    return _NONE if not value else number(value / GB)


def _ratio(value: float | None) -> str:
    return _NONE if value is None else f"{number(value, 3)}:1"
