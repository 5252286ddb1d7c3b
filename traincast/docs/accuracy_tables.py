"""Tables of errors for `docs/accuracy.md`: groups, choices of layout, memory, skipped rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from calibrate.validation import Group, RowResult, Status
from calibrate.validation.groups import groups_of
from calibrate.validation.records import Quantity, Statistics
from traincast.docs.files import share
from traincast.docs.markdown import table

Tables = Mapping[str, Sequence[RowResult]]
"""Rows by the name of the table they stand in."""
_REASONS = 10
_HEADER = ("n", "median", "mean", "p90", "worst", "bias", "> 2x slow")
_WITHOUT = ("median", "mean", "p90")
_INSIDE = "in interval"
_SIZES = (8, 64, 256)
_LARGEST = 10**9
_QUOTED_VALUE = re.compile(r": '[^']*': ")
_NUMBER = re.compile(r"(?<=[ =])\d+(?= )")
LEGEND = """\
`rows` are those of the table, `n` those with both a measurement and a forecast. Errors are
|predicted / measured - 1|; *worst* is signed, and *bias* is the median of the signed errors:
negative is a forecast that is too fast. *> 2x slow* counts rows that were measured more than twice
slower than forecast (stragglers, allocator retries, broken fabrics, or our mistake); the columns
after it leave them out. *in interval* is the share of the measurements inside the 80 % interval of
their forecast; a well-calibrated interval would hold 80 %."""


def statistics_table(name: str, lines: Sequence[Sequence[str]]) -> str:
    """Return lines of errors under the header that the legend explains."""
    return table([name, "rows", *_HEADER, *_WITHOUT, _INSIDE], lines)


def summary_table(lines: Sequence[Sequence[str]]) -> str:
    """Return the same table, whose columns without slow rows say so: it has no legend beside it."""
    without = (f"{name} without" for name in _WITHOUT)
    return table(["", "rows", *_HEADER, *without, _INSIDE], lines)


def line(name: str, rows: Sequence[RowResult]) -> list[str]:
    """Return the errors of some rows, all of them and without the slow ones."""
    group = _all(rows)
    if group is None:
        return [name, "0", *[""] * len((*_HEADER, *_WITHOUT, _INSIDE))]
    worst = group.statistics
    signed = [f"{100 * v:+.1f} %" for v in (worst.worst, worst.bias)] if worst else ["", ""]
    slow = group.slow
    text = f"{slow} ({share(slow / worst.count)})" if worst and slow else str(slow)
    count = str(worst.count) if worst else "0"
    return [
        name,
        str(group.rows),
        count,
        *_errors(group.statistics),
        *signed,
        text,
        *_errors(group.without_slow),
        _inside(rows),
    ]


def _errors(found: Statistics | None) -> list[str]:
    if found is None:
        return [""] * 3
    return [share(value) for value in (found.median, found.mean, found.p90)]


def _all(rows: Sequence[RowResult]) -> Group | None:
    return next(iter(groups_of(rows)), None)


def by(rows: Sequence[RowResult], label: str) -> dict[str, list[RowResult]]:
    """Return the rows by the value of a label, sorted by it."""
    found: dict[str, list[RowResult]] = {}
    for row in rows:
        if row.labels and label in row.labels:
            found.setdefault(row.labels[label], []).append(row)
    return dict(sorted(found.items()))


def by_size(rows: Sequence[RowResult]) -> dict[str, list[RowResult]]:
    """Return the rows of step tables by how many accelerators they used."""
    found: dict[str, list[RowResult]] = {}
    low = 1
    for high in (*_SIZES, _LARGEST):
        sized = [row for row in rows if row.choice and low <= int(row.choice.problem[1]) <= high]
        if sized:
            found[f"{low} to {high}" if high < _LARGEST else f"{low} and more"] = sized
        low = high + 1
    return found


def _inside(rows: Sequence[RowResult]) -> str:
    """Return the share of measurements inside the interval of their forecast."""
    known = [
        row.low <= row.measured <= row.high
        for row in rows
        if row.measured is not None and row.low is not None and row.high is not None
    ]
    return share(sum(known) / len(known)) if known else ""


def choices(tables: Tables) -> Iterable[str]:
    """Yield how good the layouts are that a forecast would choose, and how far memory is off."""
    lines = []
    for name, rows in tables.items():
        group = _all(rows)
        if group is None or group.regret is None:
            continue
        regret, rank = group.regret, group.regret.rank_correlation
        lines.append(
            [
                f"`{name}`",
                str(regret.problems),
                "" if rank is None else f"{rank:.2f}",
                *(share(v) for v in (regret.top1_mean, regret.top1_worst)),
                *(share(v) for v in (regret.top5_mean, regret.top5_worst)),
                str(regret.calm),
                *("" if v is None else share(v) for v in (regret.top1_median, regret.top5_median)),
            ]
        )
    if lines:
        yield "### Choice of layout"
        yield (
            "Problems of which at least three layouts were measured: how much slower than the best "
            "measured layout is the one forecast to be fastest (top 1), and the best of the five "
            "forecast to be fastest (top 5). Medians are over calm problems: at most half of their "
            "layouts were measured more than twice slower than forecast."
        )
        header = ["table", "problems", "rank correlation", "top-1 mean", "worst", "top-5 mean"]
        header += ["worst", "calm problems", "top-1 median", "top-5 median"]
        yield table(header, lines)
    yield from _memory(tables)


def _memory(tables: Tables) -> Iterable[str]:
    errors, fits = [], []
    for name, rows in tables.items():
        for group in groups_of(rows):
            if group.quantity is Quantity.PEAK_MEMORY and not group.by and group.statistics:
                s = group.statistics
                signed = (f"{100 * value:+.1f} %" for value in (s.worst, s.bias))
                errors.append([f"`{name}`", str(s.count), *_errors(s), *signed])
            seen = group.feasibility
            if seen and not group.by and seen.failed_fits + seen.failed_does_not_fit:
                ran, failed = seen.ran_fits, seen.failed_does_not_fit
                ran_all, failed_all = ran + seen.ran_does_not_fit, failed + seen.failed_fits
                fits.append([f"`{name}`", f"{ran} of {ran_all}", f"{failed} of {failed_all}"])
    if errors:
        yield "### Memory"
        yield "Reported peak memory, in the convention that the row names."
        yield table(["table", *_HEADER[:-1]], errors)
    if fits:
        yield table(["table", "ran, and forecast to fit", "failed, and forecast not to"], fits)
        yield "A run may fail for other reasons than memory; the tables do not always say which."


def skipped(rows: Sequence[RowResult]) -> str:
    """Return why rows were not predicted, the most frequent reasons first."""
    reasons = Counter(_kind_of(row.reason) for row in rows if row.status is Status.SKIPPED)
    if not reasons:
        return ""
    lines = [[reason, str(count)] for reason, count in reasons.most_common(_REASONS)]
    rest = reasons.total() - sum(int(count) for _, count in lines)
    if rest:
        lines.append(["other reasons", str(rest)])
    return (
        f"{reasons.total()} of {len(rows)} rows were not predicted. The first reason of each:\n\n"
        + table(["reason", "rows"], lines)
    )


def _kind_of(reason: str) -> str:
    """Return the first reason, without the values that differ from row to row."""
    first = reason.partition("; ")[0].partition(" (found ")[0]
    return _NUMBER.sub("N", _QUOTED_VALUE.sub(": ", first))
