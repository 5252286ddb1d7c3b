"""Terminal rendering of a plan, from the plain record of `reports.records`."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from planner.budget import shown_gap
from reports.goodput_view import print_whole_run
from reports.layout_words import layout_words
from reports.plan_columns import front_columns, layout_columns
from reports.quantities import gibibytes, number, plain
from reports.step_view import (
    Record,
    print_breakdown,
    print_notes,
    provenance_line,
    run_pairs,
)
from reports.styles import Style
from reports.table import Column, print_heading, print_pairs, print_table, print_text
from simulator.units import TERA

_HINT = "all columns: --csv, --json or a wider terminal"
_STAGES_SHOWN = 4


def print_plan(console: Console, record: Record) -> None:
    """Print the best layouts, why the best one wins, and what was searched and rejected."""
    cluster = record["cluster"]
    print_text(console, plain(record["title"]), Style.TITLE)
    print_text(
        console,
        f"{plain(record['model']['name'])} on {_machines(cluster)}, "
        f"batch {record['job']['global_batch_size']:,} x {record['job']['seq_length']:,} tokens",
    )
    console.print()
    if record["layouts"]:
        _print_layouts(console, record)
        _print_best(console, record)
        _print_front(console, record)
    elif record["beyond"]:
        print_text(console, plain(record["beyond"]), Style.BAD)
    else:
        _print_nearest(console, record)
    _print_search(console, record)
    print_notes(console, list(record["warnings"]))
    _print_footnotes(console, record)


def _machines(cluster: Record) -> str:
    """Return the accelerators of a cluster: "64 x NVIDIA H100 + 64 x NVIDIA A100"."""
    return " + ".join(
        f"{part['accelerators']:,} x {plain(part['accelerator'])}" for part in cluster["parts"]
    )


def _print_layouts(console: Console, record: Record) -> None:
    print_table(console, layout_columns(record), _HINT, {0: Style.PICK})


def _print_best(console: Console, record: Record) -> None:
    best = record["layouts"][0]
    print_breakdown(
        console, {"stage": best["busiest_stage"], "seconds": best["breakdown_s"]}, "Best layout: "
    )
    pairs = [("chosen for", plain(record["reason"])), ("bottleneck", plain(record["bottleneck"]))]
    if best["layout"].get("layers_per_stage"):
        pairs.insert(0, ("layers_per_stage", str(best["layout"]["layers_per_stage"])))
    if record["runner_up_lost"]:
        pairs.append(("runner-up", plain(record["runner_up_lost"])))
    console.print()
    print_pairs(console, pairs + run_pairs(record["run"]))
    if record["whole_run"] is not None:
        print_whole_run(console, record["whole_run"])


def _print_front(console: Console, record: Record) -> None:
    """Print the layouts that no other is as good as in both of two objectives."""
    front = record["pareto"]
    if front is not None:
        names = " and ".join(front["objectives"])
        print_heading(console, f"No other is as good in both: {names}")
        print_table(console, front_columns(front, record["currency"]), _HINT)


def _print_nearest(console: Console, record: Record) -> None:
    """Print that nothing fits, and the layouts that come closest, stage by stage."""
    limit = gibibytes(record["memory_limit_bytes"])
    legal = record["searched"]["legal"]
    if not legal:
        print_text(console, "No layout is legal; each rule below names what would be.", Style.BAD)
        return
    print_text(console, f"None of {legal:,} legal layouts fits in {limit} GiB.", Style.BAD)
    print_heading(console, "Closest")
    for miss in record["nearest"]:
        print_text(console, layout_words(miss["layout"]))
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
    if record["remedies"]:
        print_heading(console, "Tried by itself")
    for remedy in record["remedies"]:
        print_text(console, f"- {plain(remedy['what'])}: {_tried(remedy)}")


def _tried(remedy: Record) -> str:
    """Return what became of a remedy."""
    if remedy["layout"] is None:
        return "no layout is legal"
    need = f"{plain(remedy['name'])}, {gibibytes(remedy['peak_memory_bytes'])} GiB"
    return f"fits, as {need}" if remedy["fits"] else f"not enough; the smallest is {need}"


def _print_search(console: Console, record: Record) -> None:
    searched: dict[str, Any] = record["searched"]
    print_heading(console, "Search")
    print_text(
        console,
        f"{searched['considered']:,} layouts considered, {searched['legal']:,} legal, "
        f"{searched['fitting']:,} fit in memory, {searched['estimated']:,} estimated exactly "
        f"({_settled(searched)}), {searched['simulated']:,} simulated",
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


def _settled(searched: Record) -> str:
    """Return what is known of the layouts that were not estimated exactly."""
    gap = searched["gap"]
    if gap is None:
        return "the others cannot be better"
    return f"cut short: the others could be better by up to {shown_gap(gap)}"


def _print_footnotes(console: Console, record: Record) -> None:
    peak = number(record["dense_peak_flops_per_second"] / TERA)
    lines = [f"[1] {record['mfu_convention']}, {peak} TFLOP/s"] if record["layouts"] else []
    if record["layouts"]:
        lines += [
            f"[2] reserved by the fullest stage, of {gibibytes(record['memory_capacity_bytes'])} "
            f"GiB; a layout may use {gibibytes(record['memory_limit_bytes'])}",
            "[3] communication that nothing hides; as bubble, a share of the busiest stage's step",
        ]
    drawn = record["drawn"]
    if drawn is not None:
        lines.append(
            f"best in: share of {drawn['draws']} joint draws of the constants, each with "
            f"{drawn['repeats']} of the layouts' own errors (seed {drawn['seed']}), in which the "
            f"layout is the best of {drawn['compared']}; regret: how "
            "much longer than that it takes in the mean"
        )
    estimated = [entry["rank"] for entry in record["layouts"] if not entry["simulated"]]
    if estimated:
        lines.append(f"# {estimated[0]} and below are closed-form estimates, without contention")
    console.print()
    for line in lines:
        print_text(console, line, Style.MUTED)
    for text in record["assumptions"]:
        print_text(console, f"assumed: {plain(text)}", Style.CARE)
    print_text(console, provenance_line(record["provenance"]), Style.MUTED)
