"""Sections about the errors of a calibration's check: by family, the largest, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from calibrate.check import Check, Checked, FamilyCheck
from calibrate.validation.records import Statistics
from reports.quantities import plain, seconds, signed_percent
from reports.section import NONE, Section, figures, share, words
from reports.table import Column
from simulator.units import MIB

WORST = 10
"""Points with the largest errors that are listed."""
MOST = 40
"""Lines of a list; the rest is counted."""
_TITLE = "Forecast against measured"
_DIGEST = 12
"""Characters of a hash that tell profiles apart."""
_SIGNED = ("worst", "bias")
_HELD_OUT = "Held out are points that the fit of the profile has not seen."
_ALL_SEEN = (
    "The fit of the profile has seen all of these points: how far off it was on points that it had "
    "not seen stands with the fit, and in a report under its constants."
)
_UNKNOWN = "The profile does not list the points that fitted it: it may have seen some of these."


def errors_section(check: Check, base: Check | None = None) -> Section:
    """Return the errors of each family of a check, beside the median of another profile's."""
    compared = [each for each in (*check.families, check.total) if each.statistics is not None]
    if not compared:
        text = "No measured point could be compared with a forecast."
        return Section(title=_TITLE, text=(text,))
    columns = _columns(compared) + (_held_out(compared) if check.total.held_out else [])
    if base is not None:
        other = {each.family: each.statistics for each in (*base.families, base.total)}
        cells = [_of(other[each.family], "median") for each in compared]
        columns.insert(4, figures(f"with {plain(base.profile)}", cells, 2))
    return Section(
        title=_TITLE,
        text=(
            f"Profile {plain(check.profile)} ({check.sha256[:_DIGEST]}). Errors are |forecast / "
            "measured - 1|; worst and bias (the median) are signed. Noise is the median distance "
            "between the quartiles of repeats over their median: errors below it say nothing.",
            _seen(check),
        ),
        columns=tuple(columns),
    )


def _seen(check: Check) -> str:
    if not check.knows_its_fit:
        return _UNKNOWN
    return _HELD_OUT if check.total.held_out else _ALL_SEEN


def memory_section(check: Check) -> Section | None:
    """Return the errors of the memory peaks of steps, and each of them."""
    steps = [point for point in check.points if point.memory is not None]
    if not steps:
        return None
    pairs = [point.memory for point in steps if point.memory is not None]
    return Section(
        title="Memory peaks of steps",
        text=("What the allocator had given out at most, on the fullest rank.",),
        columns=(
            figures("error", [signed_percent(pair.signed_error) for pair in pairs]),
            figures("measured", [_megabytes(pair.measured) for pair in pairs]),
            figures("forecast", [_megabytes(pair.predicted) for pair in pairs]),
            words("step", [point.words for point in steps]),
        ),
    )


def worst_section(check: Check) -> Section | None:
    """Return the points with the largest errors."""
    compared = [(point, point.pair.signed_error) for point in check.points if point.pair]
    worst = sorted(compared, key=lambda each: -abs(each[1]))[:WORST]
    if not worst:
        return None
    points = [point for point, _ in worst]
    return Section(
        title="Largest errors",
        columns=(
            figures("error", [signed_percent(error) for _, error in worst]),
            figures("noise", [share(point.record.spread) for point in points], 4),
            figures("measured", [_time(point.measured) for point in points]),
            figures("forecast", [_time(point.predicted) for point in points]),
            words("point", [f"{point.family}: {point.words}" for point in points]),
            words("origin", [point.record.origin or NONE for point in points], 3),
        ),
    )


def skipped_section(points: Sequence[Checked]) -> Section | None:
    """Return why points were not compared, with how many share each reason."""
    reasons = Counter((p.family, p.reason) for p in points if p.pair is None)
    if not reasons:
        return None
    shown = reasons.most_common(MOST)
    rest = len(reasons) - len(shown)
    return Section(
        title="Not compared",
        text=(f"and {rest} other reasons",) if rest else (),
        columns=(
            figures("points", [str(count) for _, count in shown]),
            words("family", [family for (family, _), _ in shown]),
            words("why", [reason for (_, reason), _ in shown]),
        ),
    )


def _columns(families: Sequence[FamilyCheck]) -> list[Column]:
    def column(title: str, text: Callable[[FamilyCheck], str], rank: int = 0) -> Column:
        return figures(title, [text(each) for each in families], rank)

    def error(title: str, key: str, rank: int = 0) -> Column:
        return column(title, lambda each: _of(each.statistics, key), rank)

    return [
        words("family", [each.family for each in families]),
        column("n", lambda each: str(each.statistics.count if each.statistics else 0)),
        column("noise", lambda each: share(each.noise), 1),
        error("median", "median"),
        error("mean", "mean", 6),
        error("p90", "p90", 1),
        error("worst", "worst"),
        error("bias", "bias", 3),
    ]


def _held_out(families: Sequence[FamilyCheck]) -> list[Column]:
    held_out = [each.held_out for each in families]
    return [
        figures("held out", [str(each.count if each else 0) for each in held_out], 5),
        figures("held-out median", [_of(each, "median") for each in held_out], 4),
        figures("held-out worst", [_of(each, "worst") for each in held_out], 5),
    ]


def _of(statistics: Statistics | None, key: str) -> str:
    if statistics is None:
        return NONE
    value = float(getattr(statistics, key))
    return signed_percent(value) if key in _SIGNED else share(value)


def _time(value: float | None) -> str:
    return NONE if value is None else seconds(value)


def _megabytes(size: float) -> str:
    return f"{size / MIB:,.0f} MiB"
