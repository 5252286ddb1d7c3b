"""Names and values of a run plan: checkpoints, failures, energy, data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.quantities import counted, number, percent, plain, seconds
from simulator.units import GB, JOULES_PER_MWH, TERA

Record = Mapping[str, Any]
_KILO = 1e3


def checkpoint_pairs(checkpoint: Record) -> list[tuple[str, str]]:
    """Return the size, the times and the interval of checkpoints."""
    size = checkpoint["bytes"]
    steps, every = checkpoint["interval_steps"], checkpoint["interval_s"]
    return [
        (
            "one",
            f"{number(size / GB)} GB ({number(checkpoint['weights_bytes'] / GB)} weights, "
            f"{number(checkpoint['states_bytes'] / GB)} optimizer)",
        ),
        (
            "takes",
            f"{seconds(checkpoint['stall_s'])} of training, {seconds(checkpoint['write_s'])} until "
            f"it is in storage ({checkpoint['mode']}); {seconds(checkpoint['read_s'])} to read",
        ),
        (
            "every",
            f"{counted(steps, 'step')}, {seconds(every)} (chosen by: "
            f"{checkpoint['interval_chosen_by']})",
        ),
        (
            "kept",
            f"{checkpoint['kept']:,}: {number(checkpoint['stored_bytes'] / TERA)} TB",
        ),
    ]


def failure_pairs(failures: Record) -> list[tuple[str, str]]:
    """Return how often things fail, and what a failure takes."""
    mtbf, count = failures["mtbf_s"], failures["count"]
    pairs = [
        ("rates of", ", ".join(map(plain, failures["rates"]))),
        (
            "one every",
            f"{seconds(mtbf['p50'], 2)} ({seconds(mtbf['p10'], 2)} to {seconds(mtbf['p90'], 2)})",
        ),
        ("in the run", f"{count['p50']:,.0f} ({count['p10']:,.0f} to {count['p90']:,.0f})"),
        (
            "each takes",
            f"{seconds(failures['detection_s'])} to detect, {seconds(failures['restart_s'])} to "
            f"start, {seconds(failures['repair_s'])} to repair a node",
        ),
        ("first order", f"{percent(failures['first_order_goodput'])} goodput, in closed form"),
    ]
    smaller = failures["levels"][1:]
    if smaller:
        sizes = ", ".join(f"{c['nodes']:,} nodes (steps x {c['slowdown']:.3f})" for c in smaller)
        pairs.append(("or goes on with", sizes))
    return pairs


def energy_pairs(energy: Record) -> list[tuple[str, str]]:
    """Return power and energy."""
    watts = energy["node_training_w"]
    pairs = [
        (
            "power",
            f"{number(watts / _KILO, 3)} kW a node that trains, "
            f"{number(energy['accelerator_share_w'], 3)} W an accelerator's share",
        ),
        ("machines", _between(energy["machines_j"], JOULES_PER_MWH, "MWh")),
    ]
    if energy["site_j"] is not None:
        pairs.append(("with cooling", _between(energy["site_j"], JOULES_PER_MWH, "MWh")))
    if energy["co2_kg"] is not None:
        pairs.append(("CO2-equivalent", _between(energy["co2_kg"], _KILO, "t")))
    return pairs


def data_pairs(data: Record) -> list[tuple[str, str]]:
    """Return what is read, and how fast."""
    pairs = [
        (
            "data",
            f"{number(data['total_bytes'] / TERA, 3)} TB at {data['bytes_per_token']:g} bytes "
            f"a token; {number(data['samples_per_second'])} samples/s, "
            f"{number(data['read_rate'] / GB, 3)} GB/s from storage",
        )
    ]
    each = data["seconds_per_sample_of_worker"]
    if each is not None:
        pairs.append(("a loader process has", f"{seconds(each, 3)} for a sample"))
    return pairs


def _between(found: Record, unit: float, name: str) -> str:
    low, middle, high = (number(found[key] / unit, 3) for key in ("p10", "p50", "p90"))
    return f"{middle} {name} ({low} to {high})"
