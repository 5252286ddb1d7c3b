"""Columns of the tables of layouts: their fields, their forecasts, the values of objectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from reports.layout_words import recompute_words, schedule_words
from reports.quantities import gibibytes, percent
from reports.step_view import Record, aligned
from reports.table import Column
from simulator.units import GIB, JOULES_PER_MWH

_RING = "p2p"
_VARIED = {
    "nodes": "nodes",
    "global_batch_size": "batch",
    "precision": "precision",
    "rank_order": "ranks",
}
_VALUES = {
    "days": ("days", "days", 1.0),
    "cost": ("cost", "cost {}", 1.0),
    "energy": ("energy_j", "MWh", JOULES_PER_MWH),
    "memory": ("peak_memory_bytes", "GiB", float(GIB)),
    "accelerators": ("accelerators", "GPUs", 1.0),
}
"""Objective -> key of a layout, title of its column, and what it is divided by."""
_USUAL = ("1f1b", "interleaved")
"""Schedules that vpp tells apart."""


def layout_columns(record: Record) -> list[Column]:
    """Return the columns of the table of layouts, most important first to stay."""
    entries = record["layouts"]
    ends = aligned([entry[end] for entry in entries for end in ("low", "high")])
    spans = [f"{low}-{high}" for low, high in zip(ends[::2], ends[1::2], strict=True)]
    return [
        Column(title="#", cells=[str(entry["rank"]) for entry in entries]),
        *_varied_columns(entries),
        *_axis_columns([entry["layout"] for entry in entries]),
        Column(title="step s", cells=aligned([entry["step_time_s"] for entry in entries])),
        Column(title="80 % interval", cells=spans, rank=4),
        *_value_columns(record),
        _shares(entries, "tokens/s", 9, lambda entry: f"{entry['tokens_per_s']:,.0f}"),
        _shares(entries, "MFU [1]", 0, lambda entry: percent(entry["mfu"])),
        _shares(entries, "GiB [2]", 0, lambda entry: gibibytes(entry["peak_memory_bytes"])),
        _shares(entries, "comm [3]", 7, lambda entry: _of_step(entry, "exposed_communication_s")),
        _shares(entries, "bubble", 8, lambda entry: _of_step(entry, "bubble_s")),
    ]


def front_columns(front: Record, currency: str) -> list[Column]:
    """Return the columns of a Pareto front: both objectives, and the layouts."""
    points: Sequence[Record] = front["layouts"]
    values = []
    for place, objective in enumerate(front["objectives"]):
        title, unit = _shown(objective, currency)
        cells = _aligned([point["values"][place] / unit for point in points])
        values.append(Column(title=title, cells=cells))
    layouts = [point["layout"] for point in points]
    return [*values, *_varied_columns(points), *_axis_columns(layouts)]


def _varied_columns(entries: Sequence[Record]) -> list[Column]:
    """Return what jobs and clusters of the layouts differ in, if in anything."""
    keys = dict.fromkeys(key for entry in entries for key in entry["varied"])
    return [
        Column(title=_VARIED[key], cells=[str(entry["varied"].get(key, "")) for entry in entries])
        for key in keys
    ]


def _value_columns(record: Record) -> list[Column]:
    """Return the objective where it is no step time, and what draws of the constants say."""
    entries = record["layouts"]
    found: list[Column] = []
    key, title, unit = _VALUES.get(record["objective"], ("", "", 1.0))
    if key and record["objective"] != "memory":
        cells = _aligned([entry[key] / unit for entry in entries])
        found.append(Column(title=title.format(record["currency"]), cells=cells))
    if record["drawn"] is not None:
        chances = [entry["chance"] or {} for entry in entries]
        best = [percent(chance["best"]) if chance else "" for chance in chances]
        regret = [percent(chance["regret"]) if chance else "" for chance in chances]
        found.append(Column(title="best in", cells=best, rank=1))
        found.append(Column(title="regret", cells=regret, rank=1))
    return found


def _axis_columns(layouts: Sequence[Record]) -> list[Column]:
    """Return the fields of the layouts; those with nothing but `usual` texts are left out."""

    def column(
        title: str, text: Callable[[Record], str], rank: int = 0, usual: Sequence[str] = ()
    ) -> list[Column]:
        cells = [text(layout) for layout in layouts]
        return [Column(title=title, cells=cells, rank=rank)] if {*cells} - {*usual} else []

    return [
        *column("tp", _field("tp")),
        *column("pp", _field("pp")),
        *column("dp", _field("dp")),
        *column("cp", _field("cp"), usual=("1",)),
        *column("cp by", _exchange, 2, usual=("", _RING)),
        *column("ep", _field("ep"), usual=("1",)),
        *column("etp", _expert_tp, usual=("tp",)),
        *column("vpp", _field("vpp"), usual=("1",)),
        *column("layers", _layers, 2, usual=("",)),
        *column("schedule", schedule_words, 1, usual=_USUAL),
        *column("mb", _field("micro_batch_size")),
        *column("ZeRO", _field("zero_stage"), 5),
        *column("recompute", recompute_words, 3),
        *column("SP", lambda layout: _yes(layout["sequence_parallel"]), 6),
        *column("on host", _on_host, 2, usual=("",)),
    ]


def _field(key: str) -> Callable[[Record], str]:
    return lambda layout: str(layout[key])


def _layers(layout: Record) -> str:
    """Return the layers of each stage where a layout says them: "2x20 2x4", "6 2, 5 times"."""
    layers, pp, vpp = layout.get("layers_per_stage") or [], layout["pp"], layout["vpp"]
    repeats = bool(layers) and vpp > 1 and list(layers) == list(layers[:pp]) * vpp
    runs = groupby(layers[:pp] if repeats else layers)
    counts = [(len(list(run)), count) for count, run in runs]
    words = " ".join(f"{times}x{n}" if times > 1 else str(n) for times, n in counts)
    return f"{words}, {vpp} times" if repeats else words


def _exchange(layout: Record) -> str:
    """Return how keys and values are exchanged: "p2p", "a2a+p2p/4" in groups of 4, or nothing."""
    inner = layout.get("cp_inner")
    return str(layout["cp_comm_type"]) + (f"/{inner}" if inner else "") if layout["cp"] > 1 else ""


def _on_host(layout: Record) -> str:
    """Return what waits in host memory: "40 layers", "50 % opt" of the optimizer, both, nothing."""
    layers, share = layout["offload_layers"], layout["optimizer_offload"]
    parts = [f"{layers} layers"] if layers else []
    return ", ".join([*parts, f"{100 * share:.0f} % opt"] if share else parts)


def _expert_tp(layout: Record) -> str:
    etp = layout.get("etp")
    return "tp" if etp in (None, layout["tp"]) else str(etp)


def _shares(
    entries: Sequence[Record], title: str, rank: int, text: Callable[[Record], str]
) -> Column:
    return Column(title=title, cells=[text(entry) for entry in entries], rank=rank)


def _of_step(entry: Record, key: str) -> str:
    total = sum(entry["breakdown_s"].values())
    return percent(entry[key] / total if total else 0.0)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _aligned(values: list[float]) -> list[str]:
    """Return numbers of a column, without a point where all are whole."""
    whole = all(value == int(value) for value in values)
    return [f"{value:,.0f}" for value in values] if whole else aligned(values)


def _shown(objective: str, currency: str) -> tuple[str, float]:
    """Return the title of an objective's column, and what its values are divided by."""
    if objective == "step_time":
        return "step s", 1.0
    _, title, unit = _VALUES[objective]
    return title.format(currency), unit
