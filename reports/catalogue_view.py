"""Terminal rendering of lists and pages of profiles, models and stacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console

from reports.quantities import gibibytes, number, parameters, plain, seconds
from reports.step_view import Record, print_notes
from reports.styles import Style
from reports.table import Column, print_heading, print_pairs, print_table, print_text
from simulator.units import GB, TERA

_HINT = "see --json"


def print_profiles(console: Console, rows: Sequence[Record]) -> None:
    """Print the list of machines, one a line."""

    def column(title: str, cells: list[str], rank: int = 0) -> Column:
        return Column(title=title, cells=cells, rank=rank)

    names = [plain(row["name"]) for row in rows]
    print_table(
        console,
        [
            Column(title="profile", cells=names, justify="left"),
            column("a node", [str(row["accelerators_per_node"]) for row in rows]),
            column("memory GiB", [gibibytes(row["memory_bytes"]) for row in rows]),
            column("bf16 TFLOP/s", [_peak(row) for row in rows]),
            column("scale-up GB/s", [_rate(row["scale_up"]["bandwidth"]) for row in rows], 2),
            column("NIC GB/s", [_nic(row) for row in rows], 3),
            column("constants", [row["calibration"] for row in rows], 1),
            Column(
                title="accelerator",
                cells=[plain(row["accelerator"]) for row in rows],
                rank=4,
                justify="left",
            ),
        ],
        _HINT,
    )
    note = "Dense peaks; scale-up and NIC bandwidth per accelerator and direction, nominal."
    print_text(console, note, Style.MUTED)


def print_profile(console: Console, record: Record) -> None:
    """Print one machine, where its numbers come from, and how its constants came by."""
    print_text(console, f"{plain(record['name'])}: {plain(record['title'])}", Style.TITLE)
    console.print()
    print_pairs(console, list(_profile_pairs(record)))
    print_heading(console, "Constants")
    print_pairs(console, [(plain(k), plain(v)) for k, v in record["constants"].items()])
    print_heading(console, "Sources")
    print_pairs(
        console,
        [
            (plain(each["what"]), f"{plain(each['reference'])} (read {each['read_on']})")
            for each in record["sources"]
        ],
    )
    print_text(console, f"sha256 {record['sha256'][:12]}", Style.MUTED)


def print_models(console: Console, rows: Sequence[Record]) -> None:
    """Print the list of models, one a line."""
    columns = [
        Column(title="model", cells=[plain(row["name"]) for row in rows], justify="left"),
        Column(title="parameters", cells=[parameters(row["parameters"]) for row in rows]),
        Column(title="active", cells=[_active(row) for row in rows]),
        Column(title="experts", cells=[row["experts"] for row in rows], rank=1),
        Column(
            title="attention",
            cells=[row["attention"] for row in rows],
            rank=2,
            justify="left",
        ),
    ]
    for rank, (title, key) in enumerate(
        (
            ("layers", "num_hidden_layers"),
            ("hidden", "hidden_size"),
            ("heads", "num_attention_heads"),
            ("MLP", "intermediate_size"),
            ("vocabulary", "vocab_size"),
        )
    ):
        columns.append(Column(title=title, cells=[str(row[key]) for row in rows], rank=rank))
    print_table(console, columns, _HINT)


def _active(row: Record) -> str:
    """Return the parameters that a token meets, where they are not all."""
    active = row["active_parameters"]
    return parameters(active) if active != row["parameters"] else ""


def print_model(console: Console, record: Record) -> None:
    """Print one model with its parameters by part, and what its reader noted."""
    spec, counts = record["spec"], record["parameters"]
    print_text(console, plain(record["name"]), Style.TITLE)
    console.print()
    print_table(
        console,
        [
            Column(title="parameters", cells=list(counts), justify="left"),
            Column(title="count", cells=[f"{count:,}" for count in counts.values()]),
        ],
    )
    console.print()
    print_pairs(console, list(_model_pairs(record)))
    print_heading(console, "Configuration")
    hidden = ("name", "source")
    shown = {key: value for key, value in spec.items() if key not in hidden}
    print_pairs(console, [(key, plain(str(value))) for key, value in _flat(shown)])
    if spec.get("source"):
        console.print()
        print_pairs(console, [("source", plain(spec["source"]))])
    print_notes(console, list(record["notes"]), "note")


def _model_pairs(record: Record) -> Iterator[tuple[str, str]]:
    yield "attention", record["attention"]
    yield "experts", record["experts"] or "none"
    if record["experts"]:
        yield "active parameters", f"{record['active_parameters']:,}"
    if record["mtp_parameters"]:
        yield "multi-token prediction (not in the total)", f"{record['mtp_parameters']:,}"


def _flat(table: Record, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables under dotted keys."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def print_stacks(console: Console, records: Sequence[Record]) -> None:
    """Print the list of stacks, one a line."""
    print_pairs(console, [(plain(each["name"]), plain(each["title"])) for each in records])


def print_stack(console: Console, record: Record) -> None:
    """Print one stack, table by table."""
    print_text(console, f"{plain(record['name'])}: {plain(record['title'])}", Style.TITLE)
    console.print()
    tables = {key: value for key, value in record.items() if isinstance(value, dict)}
    rest = [(key, value) for key, value in record.items() if key not in tables]
    print_pairs(console, _pairs([item for item in rest if item[0] not in ("name", "title")]))
    for key, table in tables.items():
        print_heading(console, key)
        print_pairs(console, _pairs(list(table.items())))


def _profile_pairs(record: Record) -> Iterator[tuple[str, str]]:
    yield "accelerator", f"{record['accelerators_per_node']} x {plain(record['accelerator'])}"
    memory = f"{gibibytes(record['memory_bytes'])} GiB, {_rate(record['memory_bandwidth'])} GB/s"
    yield "memory", memory
    peaks = record["dense_peak_flops_per_second"].items()
    yield (
        "dense peak",
        ", ".join(f"{kind} {number(rate / TERA)}" for kind, rate in peaks) + (" TFLOP/s"),
    )
    scale_up, fabric = record["scale_up"], record["fabric"]
    yield (
        "scale-up",
        f"{scale_up['kind']}, {_rate(scale_up['bandwidth'])} GB/s an accelerator and direction, "
        f"domain of {scale_up['domain_size']}",
    )
    nic = record["nic"]
    yield (
        "NICs",
        f"{nic['per_node']} x {_rate(nic['bandwidth'])} GB/s a node" if nic else "none: one node",
    )
    yield (
        "fabric",
        f"{fabric['kind']}, {fabric['nodes_per_leaf']} nodes a leaf, oversubscription "
        f"{number(fabric['oversubscription'])}",
    )
    yield "power", f"{number(record['power_w'])} W an accelerator"
    price = record["price_per_accelerator_hour"]
    yield (
        "price",
        "not given"
        if price is None
        else f"{number(price)} {plain(record['currency'])} an accelerator and hour",
    )
    if record["aliases"]:
        yield "aliases", plain(", ".join(record["aliases"]))


def _pairs(items: list[tuple[str, Any]]) -> list[tuple[str, str]]:
    return [(key, plain(_text(value))) for key, value in items]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, str):
        return _quantity(value)
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items()) or "none"
    return str(value)


def _quantity(text: str) -> str:
    """Return a duration or size of a file, as it is written in JSON, as a person would write it."""
    value, _, unit = text.partition(" ")
    try:
        amount = float(value)
    except ValueError:
        return text
    match unit:
        case "s":
            return seconds(amount)
        case "B":
            return f"{gibibytes(amount)} GiB"
        case _:
            return text


def _peak(row: Record) -> str:
    peak = row["dense_peak_flops_per_second"].get("bf16")
    return "-" if peak is None else number(peak / TERA)


def _rate(bandwidth: float) -> str:
    return number(bandwidth / GB)


def _nic(row: Record) -> str:
    nic = row["nic"]
    if nic is None:
        return "-"
    return _rate(nic["per_node"] * nic["bandwidth"] / row["accelerators_per_node"])
