"""Terminal rendering of one forecast step, from the plain record of `reports.records`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from rich.console import Console

from reports.layout_words import layout_line
from reports.network_view import print_network
from reports.quantities import days_as_time, gibibytes, number, percent, plain, seconds
from reports.styles import Style
from reports.table import Column, print_heading, print_pairs, print_table, print_text
from simulator.units import TERA

_SMALL_SHARE = 0.0005
_ALL_KINDS = (
    *("weights", "gradients", "optimizer", "activations", "transient", "logits", "allocated"),
    *("fragmentation", "context", "reserved"),
)
_ROWS_SHOWN = 12
CLOSE_TO_FULL = 0.88
"""Share of the device memory above which a forecast warns."""

Record = Mapping[str, Any]


def print_step(console: Console, record: Record) -> None:
    """Print a forecast step: numbers, where the time goes, memory a stage, provenance."""
    print_text(console, plain(record["title"]), Style.TITLE)
    print_text(console, f"{layout_line(record['layout'])}; {record['method']}")
    console.print()
    unfit = {} if record["memory"]["fits"] else {"peak memory": Style.BAD}
    print_pairs(console, step_pairs(record), unfit)
    print_breakdown(console, record["breakdown"])
    print_network(console, record["network"], record["step"]["step_time_s"])
    _print_memory(console, record["memory"])
    print_notes(console, [*record["model"]["notes"], *record["provenance"]["warnings"]])
    footnotes(console, record)


def step_pairs(record: Record) -> list[tuple[str, str]]:
    """Return the numbers that matter most, with their names."""
    step, memory = record["step"], record["memory"]
    fullest, room = _fullest(memory)
    pairs = [
        (
            "step time",
            f"{seconds(step['step_time_s'])}  ({step['interval']} interval "
            f"{seconds(step['low_s'])} to {seconds(step['high_s'])})",
        ),
        (
            "throughput",
            f"{number(step['tokens_per_second'])} tokens/s  "
            f"({number(step['tokens_per_second_per_accelerator'])} an accelerator)",
        ),
        ("MFU [1]", percent(step["mfu"])),
        ("HFU [2]", percent(step["hfu"])),
        (
            "peak memory",
            f"{gibibytes(fullest['reserved'])} of {gibibytes(room)} GiB reserved "
            f"({'fits' if memory['fits'] else 'DOES NOT FIT'})",
        ),
    ]
    return pairs + run_pairs(record["run"])


def print_breakdown(console: Console, breakdown: Record, prefix: str = "") -> None:
    """Print the seconds of the busiest stage by category, largest first."""
    total = sum(breakdown["seconds"].values())
    ranked = sorted(breakdown["seconds"].items(), key=lambda item: -item[1])
    shown = [(name, value) for name, value in ranked if value > _SMALL_SHARE * total]
    where = f"where the time goes (stage {breakdown['stage']}, the busiest)"
    print_heading(console, f"{prefix}{where}" if prefix else where.capitalize())
    print_table(
        console,
        [
            Column(title="", cells=[name.replace("_", " ") for name, _ in shown], justify="left"),
            Column(title="seconds", cells=aligned([value for _, value in shown])),
            Column(title="share", cells=[percent(value / total) for _, value in shown]),
        ],
    )


def print_notes(console: Console, notes: list[str], kind: str = "warning") -> None:
    """Print warnings or notes, one a line."""
    if notes:
        console.print()
    for note in notes:
        print_text(console, f"{kind}: {plain(note)}", Style.CARE)


def footnotes(console: Console, record: Record) -> None:
    """Print what MFU and HFU count, and what the numbers were computed from."""
    step, provenance = record["step"], record["provenance"]
    peak = number(step["dense_peak_flops_per_second"] / TERA)
    console.print()
    print_text(console, f"[1] {step['mfu_convention']}, {peak} TFLOP/s", Style.MUTED)
    print_text(console, f"[2] {step['hfu_convention']}", Style.MUTED)
    print_text(console, provenance_line(provenance), Style.MUTED)


def provenance_line(provenance: Record) -> str:
    """Return one line that says what the numbers were computed from."""
    kinds = {str(origin).partition(":")[0] for origin in provenance["constants"].values()}
    digests = " + ".join(each[:12] for each in provenance["profile_sha256"].split(" + "))
    return (
        f"traincast {provenance['traincast']}, profile {plain(provenance['profile'])} "
        f"({digests}, {' and '.join(sorted(kinds))} constants), "
        f"stack {plain(provenance['stack'])}"
    )


def aligned(values: list[float]) -> list[str]:
    """Return values with the decimals that the largest needs for four digits.

    >>> aligned([12.3456, 0.5])
    ['12.35', '0.50']
    """
    largest = max(values, default=0.0)
    decimals = len(number(largest).partition(".")[2]) if "e" not in number(largest) else 3
    return [f"{value:,.{decimals}f}" for value in values]


def run_pairs(run: Record | None) -> list[tuple[str, str]]:
    """Return how long the whole run takes and what it costs; nothing where it has no end."""
    if run is None:
        return []
    between = f"{days_as_time(run['days_low'])} to {days_as_time(run['days_high'])}"
    pairs = [
        (
            "whole run",
            f"{days_as_time(run['days'])}  ({between}) for {run['steps']:,} steps, no failures",
        ),
        ("GPU-hours", number(run["accelerator_hours"])),
    ]
    if run["cost"] is not None:
        pairs.append(("cost", f"{number(run['cost'])} {plain(run['currency'])}"))
    return pairs


def _print_memory(console: Console, memory: Record) -> None:
    stages = memory["stages"]
    fullest, room = _fullest(memory)
    alike = _alike(stages)
    shown = alike if len(alike) <= _ROWS_SHOWN else _ends(alike, fullest)
    print_heading(console, "Memory of one rank a stage at its peak, GiB")
    print_table(console, _memory_columns(shown), "see --json")
    if len(shown) < len(alike):
        print_text(console, f"{len(alike) - len(shown)} rows between them: see --json", Style.MUTED)
    print_text(
        console,
        f"capacity {_capacities(memory)}; stage {fullest['stage']} "
        f"({_ranks(fullest)}) is the fullest, at its peak in: {plain(fullest['moment'])}",
    )
    experts = [float(fullest[f"expert_{kind}"]) for kind in ("weights", "gradients", "optimizer")]
    if any(experts):
        parts = "weights {}, gradients {}, optimizer {}".format(*map(gibibytes, experts))
        print_text(console, f"of it the routed experts' shares (ETP x EP x expert data): {parts}")
    on_host = max(stage["host"] for stage in stages)
    if on_host:
        there = gibibytes(memory["host_capacity_bytes"])
        print_text(console, f"host memory {gibibytes(on_host)} of {there} GiB a rank is used")
    share = fullest["reserved"] / room
    if CLOSE_TO_FULL < share <= 1:
        text = f"{percent(share)} of the memory is reserved; fragmentation may exceed the rest"
        print_notes(console, [text])


def _fullest(memory: Record) -> tuple[Record, float]:
    """Return the stage with least room for its size, and the bytes of its accelerator."""
    stages, room = memory["stages"], memory["stage_capacity_bytes"]
    rooms = room or [memory["capacity_bytes"]] * len(stages)
    pairs = zip(stages, rooms, strict=True)
    return max(pairs, key=lambda pair: float(pair[0]["reserved"] / pair[1]))


def _capacities(memory: Record) -> str:
    """Return the memory of an accelerator: "79.65 GiB (stages 0-1), 80.00 GiB (stages 2-3)"."""
    rooms = [gibibytes(room) for room in memory["stage_capacity_bytes"]]
    runs = [list(run) for _, run in groupby(range(len(rooms)), key=rooms.__getitem__)]
    if len(runs) <= 1:
        return f"{gibibytes(memory['capacity_bytes'])} GiB"
    return ", ".join(f"{rooms[run[0]]} GiB (stages {run[0]}-{run[-1]})" for run in runs)


def _ranks(stage: Record) -> str:
    first, last = stage["first_rank"], stage["last_rank"]
    return f"rank {first}" if first == last else f"each of ranks {first:,} to {last:,}"


def _alike(stages: list[Record]) -> list[list[Record]]:
    """Return runs of neighbouring stages that show the same numbers."""
    runs = groupby(stages, key=lambda stage: [gibibytes(stage[kind]) for kind in _ALL_KINDS])
    return [list(run) for _, run in runs]


def _ends(alike: list[list[Record]], fullest: Record) -> list[list[Record]]:
    """Return the first and last rows, and the one of the fullest stage."""
    half = _ROWS_SHOWN // 2
    middle = alike[half : len(alike) - half]
    return [*alike[:half], *(run for run in middle if fullest in run), *alike[-half:]]


def _memory_columns(alike: list[list[Record]]) -> list[Column]:
    first = [run[0] for run in alike]
    ends = [(run[0]["stage"], run[-1]["stage"]) for run in alike]
    names = [f"{a}" if a == b else f"{a}-{b}" for a, b in ends]
    columns = [Column(title="stage", cells=names)]
    for rank, kind in enumerate(_ALL_KINDS, start=1):
        cells = [gibibytes(stage[kind]) for stage in first]
        keep = kind in ("allocated", "reserved")
        columns.append(Column(title=kind, cells=cells, rank=0 if keep else rank))
    moments = [plain(stage["moment"]) for stage in first]
    return [*columns, Column(title="peak", cells=moments, rank=len(_ALL_KINDS) + 1, justify="left")]
