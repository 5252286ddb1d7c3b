"""A placement of ranks as a record for machines, and that record as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console

from planner.placing import PlacedStep, Placing
from reports.quantities import counted, number, percent, plain, seconds
from reports.section import NONE
from reports.styles import Style
from reports.table import Column, print_heading, print_pairs, print_table, print_text
from simulator.scenario import Scenario
from simulator.units import GB

Record = Mapping[str, Any]


def place_record(scenario: Scenario, placing: Placing) -> dict[str, Any]:
    """Return both orders and what each puts on the network; times are seconds, sizes bytes."""
    return {
        "title": scenario.title,
        "scenario": scenario.where,
        "layout": str(placing.layout),
        "goal": str(placing.goal),
        "evaluated": placing.evaluated,
        "better": placing.is_better,
        "gain": placing.gain,
        "sent_bytes": {str(axis): sent for axis, sent in placing.bytes_of.items()},
        "before": _order_record(placing.before),
        "found": _order_record(placing.found),
    }


def _order_record(order: PlacedStep) -> dict[str, Any]:
    return {
        "order": order.places.order,
        "step_time_s": order.step_time,
        "accelerators": order.places.accelerators.tolist(),
        "axes": [{**asdict(axis), "axis": str(axis.axis)} for axis in order.score.axes],
    }


def print_place(console: Console, record: Record, out: str | None) -> None:
    """Print both step times and the traffic behind them; `out` is where the order was written."""
    print_text(console, f"{record['title']}: {record['layout']}", Style.TITLE)
    console.print()
    before, found = record["before"], record["found"]
    order = f"in the order {plain(before['order'])}"
    print_pairs(
        console,
        [
            ("step before", f"{seconds(before['step_time_s'])} ({order})"),
            ("step after", f"{seconds(found['step_time_s'])} (in the order found)"),
            ("verdict", _verdict(record)),
            ("searched", f"{counted(record['evaluated'], 'order')} for {record['goal']}"),
        ],
    )
    if before["axes"]:
        _print_axes(console, record)
        _print_links(console, record)
    _print_file(console, record, out)


def _verdict(record: Record) -> str:
    gain = record["gain"]
    if not record["better"]:
        return "nothing better was found: keep the order that there is"
    if gain <= 0:
        return "the step is as long, and the network carries less"
    return f"{percent(gain)} shorter"


def _print_axes(console: Console, record: Record) -> None:
    before, found = record["before"]["axes"], record["found"]["axes"]
    sent = record["sent_bytes"]
    print_heading(console, "Traffic of a step: in the order before, and in the order found")
    columns = [
        Column(title="axis", cells=[each["axis"] for each in before], justify="left"),
        Column(title="GB a rank", cells=[number(sent[each["axis"]] / GB) for each in before]),
    ]
    titles = {"crossing": "GB between switches", "leaving": "GB out of units"}
    for key, title in titles.items():
        for word, axes in (("", before), ("after", found)):
            cells = [number(each[key] / GB) for each in axes]
            columns.append(Column(title=word or title, cells=cells))
    print_table(console, columns, "--json has all")


def _print_links(console: Console, record: Record) -> None:
    print_heading(console, "The fullest link of each axis, and how long it carries its bytes")
    before, found = record["before"]["axes"], record["found"]["axes"]
    columns = [Column(title="axis", cells=[each["axis"] for each in before], justify="left")]
    for word, axes in (("before", before), ("after", found)):
        links = [plain(each["link"]) if each["seconds"] else NONE for each in axes]
        columns += [
            Column(title=word, cells=[seconds(each["seconds"]) for each in axes]),
            Column(title="on", cells=links, justify="left"),
        ]
    print_table(console, columns, "--json has all")


def _print_file(console: Console, record: Record, out: str | None) -> None:
    console.print()
    if out is not None:
        which = "order found" if record["better"] else "order that there is"
        print_text(console, f"wrote {plain(out)}, the {which}: rank_order in [cluster.network]")
    elif record["better"]:
        print_text(console, "-o places.csv writes the order, for rank_order in [cluster.network]")
