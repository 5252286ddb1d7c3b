"""Terminal rendering of a plan, from the plain record of `reports.records`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console

from reports.quantities import gibibytes, number, percent, plain
from reports.step_view import (
    Record,
    aligned,
    layout_parts,
    print_breakdown,
    print_notes,
    provenance_line,
    recompute_words,
    run_pairs,
    schedule_words,
)
from reports.table import Column, print_heading, print_pairs, print_table, print_text
from simulator.units import TERA

_HINT = "all columns: --csv, --json or a wider terminal"
_STAGES_SHOWN = 4
_BAD = "bold red"
_RING = "p2p"
_USUAL = ("1f1b", "interleaved")
"""Schedules that vpp tells apart."""


def print_plan(console: Console, record: Record) -> None:
    """Print the best layouts, why the best one wins, and what was searched and rejected."""
    cluster = record["cluster"]
    print_text(console, plain(record["title"]), "bold")
    print_text(
        console,
        f"{plain(record['model']['name'])} on {cluster['accelerators']:,} x "
        f"{plain(cluster['accelerator'])}, batch {record['job']['global_batch_size']:,} x "
        f"{record['job']['seq_length']:,} tokens",
    )
    console.print()
    if record["layouts"]:
        _print_layouts(console, record)
        _print_best(console, record)
    else:
        _print_nearest(console, record)
    _print_search(console, record)
    print_notes(console, list(record["warnings"]))
    _print_footnotes(console, record)


def layout_columns(record: Record) -> list[Column]:
    """Return the columns of the table of layouts, most important first to stay."""
    entries = record["layouts"]
    ends = aligned([entry[end] for entry in entries for end in ("low", "high")])
    spans = [f"{low}-{high}" for low, high in zip(ends[::2], ends[1::2], strict=True)]
    return [
        Column(title="#", cells=[str(entry["rank"]) for entry in entries]),
        *_axis_columns([entry["layout"] for entry in entries]),
        Column(title="step s", cells=aligned([entry["step_time_s"] for entry in entries])),
        Column(title="80 % interval", cells=spans, rank=4),
        _shares(entries, "tokens/s", 9, lambda entry: f"{entry['tokens_per_s']:,.0f}"),
        _shares(entries, "MFU [1]", 0, lambda entry: percent(entry["mfu"])),
        _shares(entries, "GiB [2]", 0, lambda entry: gibibytes(entry["peak_memory_bytes"])),
        _shares(entries, "comm [3]", 7, lambda entry: _of_step(entry, "exposed_communication_s")),
        _shares(entries, "bubble", 8, lambda entry: _of_step(entry, "bubble_s")),
    ]


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
        *column("schedule", schedule_words, 1, usual=_USUAL),
        *column("mb", _field("micro_batch_size")),
        *column("ZeRO", _field("zero_stage"), 5),
        *column("recompute", recompute_words, 3),
        *column("SP", lambda layout: _yes(layout["sequence_parallel"]), 6),
        *column("on host", _on_host, 2, usual=("",)),
    ]


def _field(key: str) -> Callable[[Record], str]:
    return lambda layout: str(layout[key])


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


def _print_layouts(console: Console, record: Record) -> None:
    print_table(console, layout_columns(record), _HINT)


def _print_best(console: Console, record: Record) -> None:
    best = record["layouts"][0]
    print_breakdown(
        console, {"stage": best["busiest_stage"], "seconds": best["breakdown_s"]}, "Best layout: "
    )
    pairs = [("bottleneck", plain(record["bottleneck"]))]
    if best["layout"].get("layers_per_stage"):
        pairs.insert(0, ("layers_per_stage", str(best["layout"]["layers_per_stage"])))
    if record["runner_up_lost"]:
        pairs.append(("runner-up", plain(record["runner_up_lost"])))
    console.print()
    print_pairs(console, pairs + run_pairs(record["run"]))


def _print_nearest(console: Console, record: Record) -> None:
    """Print that nothing fits, and the layouts that come closest, stage by stage."""
    limit = gibibytes(record["memory_limit_bytes"])
    legal = record["searched"]["legal"]
    if not legal:
        print_text(console, "No layout is legal; each rule below names what would be.", _BAD)
        return
    print_text(console, f"None of {legal:,} legal layouts fits in {limit} GiB.", _BAD)
    print_heading(console, "Closest")
    for miss in record["nearest"]:
        print_text(console, ", ".join(layout_parts(miss["layout"])))
        over = [stage for stage in miss["stages"] if stage["over_bytes"] > 0]
        for stage in over[:_STAGES_SHOWN]:
            print_text(
                console,
                f"- stage {stage['stage']}: {gibibytes(stage['peak_memory_bytes'])} GiB, "
                f"{gibibytes(stage['over_bytes'])} too many; mostly {plain(stage['largest'])}, "
                f"{plain(stage['moment'])}",
            )
        if len(over) > _STAGES_SHOWN:
            print_text(console, f"- and {len(over) - _STAGES_SHOWN} more stages")
    if record["hints"]:
        print_heading(console, "Not tried, and smaller")
    for hint in record["hints"]:
        print_text(console, f"- {plain(hint)}")


def _print_search(console: Console, record: Record) -> None:
    searched: dict[str, Any] = record["searched"]
    print_heading(console, "Search")
    print_text(
        console,
        f"{searched['considered']:,} layouts considered, {searched['legal']:,} legal, "
        f"{searched['fitting']:,} fit in memory, {searched['estimated']:,} estimated exactly "
        f"(the others cannot be faster), {searched['simulated']:,} simulated",
    )
    rejected = list(record["rejected"].items())
    if not rejected:
        return
    print_table(
        console,
        [
            Column(title="rejected", cells=[f"{count:,}" for _, count in rejected]),
            Column(title="because", cells=[reason for reason, _ in rejected], justify="left"),
        ],
    )
    if not record["layouts"]:
        print_heading(console, "One case of each")
        for text in record["examples"].values():
            for line in str(text).splitlines():
                print_text(console, plain(line))


def _print_footnotes(console: Console, record: Record) -> None:
    peak = number(record["dense_peak_flops_per_second"] / TERA)
    lines = [f"[1] {record['mfu_convention']}, {peak} TFLOP/s"] if record["layouts"] else []
    if record["layouts"]:
        lines += [
            f"[2] reserved by the fullest stage, of {gibibytes(record['memory_capacity_bytes'])} "
            f"GiB; a layout may use {gibibytes(record['memory_limit_bytes'])}",
            "[3] communication that nothing hides; as bubble, a share of the busiest stage's step",
        ]
    estimated = [entry["rank"] for entry in record["layouts"] if not entry["simulated"]]
    if estimated:
        lines.append(f"# {estimated[0]} and below are closed-form estimates, without contention")
    lines += [f"assumed: {plain(text)}" for text in record["assumptions"]]
    lines.append(provenance_line(record["provenance"]))
    console.print()
    for line in lines:
        print_text(console, line, "dim")
