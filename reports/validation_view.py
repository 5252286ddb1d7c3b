"""Terminal rendering of a validation, from the plain record of `calibrate.validation`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rich.console import Console

from reports.network_view import shortened
from reports.quantities import percent, plain, signed_percent
from reports.step_view import Record
from reports.styles import Style
from reports.table import Column, print_heading, print_pairs, print_table, print_text

QUANTITIES = {
    "step_time": "step time",
    "collective_time": "time of collectives",
    "gemm_time": "time of matrix products",
    "attention_time": "time of attention",
    "peak_memory": "peak memory",
}
"""What was measured, in words."""
_REASONS = 12
_NAME_WIDTH = 48
"""Cells of a name; a longer one shows that its middle is left out."""


def print_validation(console: Console, record: Record) -> None:
    """Print the errors of each group, the choices that they lead to, and skipped rows."""
    groups = record["groups"]
    print_table(console, group_columns(groups), "see --json")
    print_text(
        console,
        "Errors are |predicted / measured - 1|; worst and bias (the median) are signed. Slow rows "
        "took more than twice the forecast; median* is without them.",
        Style.MUTED,
    )
    for group in groups[:1]:
        _print_choices(console, group)
    _print_skipped(console, record["rows"])


def group_columns(groups: Sequence[Record]) -> list[Column]:
    """Return the columns of the table of groups."""

    def column(title: str, text: Callable[[Record], str], rank: int = 0) -> Column:
        return Column(title=title, cells=[text(group) for group in groups], rank=rank)

    def share(title: str, table: str, key: str, rank: int = 0) -> Column:
        return column(title, lambda group: _share(group[table], key), rank)

    names = [plain(f"{QUANTITIES[group['quantity']]}: {group['name']}") for group in groups]
    names = [shortened(name, _NAME_WIDTH) for name in names]
    return [
        Column(title="group", cells=names, justify="left"),
        column("rows", lambda group: str(group["rows"]), 5),
        column("compared", lambda group: str(group["compared"])),
        share("median", "statistics", "median"),
        share("mean", "statistics", "mean", 6),
        share("p90", "statistics", "p90"),
        share("worst", "statistics", "worst", 3),
        share("bias", "statistics", "bias", 2),
        column("slow", lambda group: str(group["slow"]), 4),
        share("median*", "without_slow", "median", 7),
        column("rank corr.", lambda group: _optional(group["rank_correlation"]), 8),
    ]


def _share(table: Record | None, key: str) -> str:
    if table is None or table[key] is None:
        return "-"
    value = float(table[key])
    return signed_percent(value) if key in ("worst", "bias") else percent(value)


def _optional(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent_or_dash(value: float | None) -> str:
    return "-" if value is None else percent(value)


def _print_choices(console: Console, group: Record) -> None:
    pairs = []
    if regret := group["regret"]:
        pairs.append(
            (
                "choice of layout",
                f"{regret['problems']} problems; taking the forecast's best costs "
                f"{percent(regret['top1_mean'])} on average ({percent(regret['top1_worst'])} at "
                f"worst), the best of its five {percent(regret['top5_mean'])}; median of the "
                f"{regret['calm']} that mostly ran as forecast "
                f"{_percent_or_dash(regret['top1_median'])} and "
                f"{_percent_or_dash(regret['top5_median'])}",
            )
        )
    if seen := group["feasibility"]:
        ran = seen["ran_fits"] + seen["ran_does_not_fit"]
        failed = seen["failed_fits"] + seen["failed_does_not_fit"]
        pairs.append(
            (
                "memory",
                f"of {ran} rows that ran {seen['ran_does_not_fit']} are forecast not to fit; of "
                f"{failed} that failed {seen['failed_does_not_fit']} are",
            )
        )
    if pairs:
        console.print()
        print_pairs(console, pairs)


def _print_skipped(console: Console, rows: Sequence[Record]) -> None:
    reasons = Counter(str(row["reason"]) for row in rows if row["status"] == "skipped")
    print_heading(console, f"{reasons.total():,} of {len(rows):,} rows were not forecast")
    shown = reasons.most_common(_REASONS)
    if not shown:
        return
    print_pairs(console, [(f"{count:,}", plain(reason)) for reason, count in shown])
    if len(reasons) > len(shown):
        print_text(console, f"and {len(reasons) - len(shown)} other reasons (see --json)")
