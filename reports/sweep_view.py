"""Terminal rendering of a sweep, from the plain record of `reports.sweep_record`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console

from planner.sweep.row import Outcome
from reports.quantities import counted, gibibytes, number, percent, plain, unit_of_days
from reports.step_view import Record, aligned, print_notes
from reports.styles import Style
from reports.table import Column, print_heading, print_table, print_text

_HINT = "all columns: --csv, --json or a wider terminal"
_NONE = ""
_NO_FORECAST, _NO_RUN = "Without a forecast", "Without a whole run"
_REASONS = 10
"""Rows without a forecast whose reason is printed."""


def print_sweep(console: Console, record: Record) -> None:
    """Print one line a combination, and why there are combinations without a forecast."""
    rows = record["rows"]
    print_text(console, plain(record["title"]), Style.TITLE)
    runs = [row for row in rows if row["outcome"] == Outcome.OK]
    kept = f"; {counted(record['kept'], 'row')} kept from before" if record["kept"] else ""
    print_text(console, f"{counted(len(rows), 'combination')}, {len(runs)} of them can run{kept}")
    console.print()
    numbers = Column(title="#", cells=[str(place) for place in range(1, len(rows) + 1)])
    columns = [numbers, *_value_columns(record), *forecast_columns(rows)]
    unfit = (place for place, row in enumerate(rows) if row["outcome"] != Outcome.OK)
    print_table(console, columns, _HINT, dict.fromkeys(unfit, Style.BAD))
    _print_reasons(console, rows)
    warnings = dict.fromkeys(text for row in rows for text in row["warnings"])
    print_notes(console, list(warnings))
    print_notes(console, list(record["notes"]), "note")


def forecast_columns(rows: Sequence[Record]) -> list[Column]:
    """Return the columns of the forecasts; those that no row has are left out."""
    outcomes = [_NONE if row["outcome"] == Outcome.OK else row["outcome"] for row in rows]
    columns = [
        _column(rows, "GPUs", "accelerators", lambda values: [f"{v:,}" for v in values], rank=8),
        Column(title="layout", cells=[row["layout"] for row in rows], rank=6, justify="left"),
        _column(rows, "step s", "step_time_s", aligned),
        Column(title="80 % interval", cells=_intervals(rows), rank=4),
        _column(rows, "tokens/s", "tokens_per_s", lambda values: [f"{v:,.0f}" for v in values]),
        _column(rows, "MFU", "mfu", _percents),
        _column(
            rows, "GiB", "peak_memory_bytes", lambda values: [gibibytes(v) for v in values], rank=7
        ),
        _time_column(rows, "{}", "days"),
        _column(rows, "GPU-hours", "accelerator_hours", _whole, rank=5),
        _column(rows, _cost_title(rows), "cost", _whole, rank=3),
        _time_column(rows, "run {}", "run_days_p50", rank=2),
        _column(rows, "goodput", "run_goodput", _percents, rank=1),
        Column(title="outcome", cells=outcomes, justify="left"),
    ]
    return [column for column in columns if any(column.cells)]


def _column(
    rows: Sequence[Record],
    title: str,
    key: str,
    texts: Callable[[list[float]], list[str]],
    rank: int = 0,
) -> Column:
    """Return one quantity; a row that cannot run has none."""
    shown = [row[key] if row["outcome"] == Outcome.OK else None for row in rows]
    written = iter(texts([value for value in shown if value is not None]))
    return Column(
        title=title, cells=[_NONE if v is None else next(written) for v in shown], rank=rank
    )


def _time_column(rows: Sequence[Record], title: str, key: str, rank: int = 0) -> Column:
    """Return what is kept in days, in the unit that the longest is easily read in."""
    days = [row[key] for row in rows if row["outcome"] == Outcome.OK and row[key] is not None]
    unit, of_a_day = unit_of_days(days)
    return _column(
        rows, title.format(unit), key, lambda values: aligned([v * of_a_day for v in values]), rank
    )


def _intervals(rows: Sequence[Record]) -> list[str]:
    shown = [row for row in rows if row["outcome"] == Outcome.OK]
    ends = iter(aligned([row[end] for row in shown for end in ("low_s", "high_s")]))
    return [f"{next(ends)}-{next(ends)}" if row["outcome"] == Outcome.OK else _NONE for row in rows]


def _whole(values: list[float]) -> list[str]:
    return [number(value) for value in values]


def _percents(values: list[float]) -> list[str]:
    return [percent(value) for value in values]


def _cost_title(rows: Sequence[Record]) -> str:
    currencies = {row["currency"] for row in rows if row["cost"] is not None}
    return currencies.pop() if len(currencies) == 1 else "cost"


def _value_columns(record: Record) -> list[Column]:
    """Return the swept keys by their last part, or in full where two end alike."""
    keys: list[str] = record["keys"]
    last = [key.rpartition(".")[2] for key in keys]
    titles = [end if last.count(end) == 1 else key for key, end in zip(keys, last, strict=True)]
    return [
        Column(
            title=title,
            cells=[plain(value_text(row["values"].get(key))) for row in record["rows"]],
        )
        for key, title in zip(keys, titles, strict=True)
    ]


def value_text(value: Any) -> str:
    """Return a value of a key as a person reads it.

    >>> value_text(1024), value_text([4, 8]), value_text(None)
    ('1,024', '4 8', '')
    """
    match value:
        case None:
            return ""
        case list():
            return " ".join(map(value_text, value))
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case _:
            return str(value)


def _print_reasons(console: Console, rows: Sequence[Record]) -> None:
    """Print why rows have no forecast, or no whole run; the same reason once."""
    without: dict[str, dict[str, list[int]]] = {}
    for place, row in enumerate(rows, start=1):
        if row["reason"]:
            heading = _NO_RUN if row["outcome"] == Outcome.OK else _NO_FORECAST
            without.setdefault(heading, {}).setdefault(row["reason"], []).append(place)
    for heading, reasons in without.items():
        print_heading(console, heading)
        for reason, places in list(reasons.items())[:_REASONS]:
            for text in f"#{', #'.join(map(str, places))}: {reason}".splitlines():
                print_text(console, plain(text))
        if len(reasons) > _REASONS:
            print_text(console, f"and {len(reasons) - _REASONS} more reasons: --json")
