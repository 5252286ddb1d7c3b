"""Plain-text rendering of a validation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from calibrate.validation.records import Group, Quantity, Statistics, Status, Validation

_NAME_WIDTH = 52
_REASONS = 12
_REASON_WIDTH = 110
_COLUMNS = "rows n median mean p90 worst bias slow n median mean p90 rho"
"""The second four are without the slow rows; rho is the rank correlation."""


def render(validation: Validation) -> str:
    """Return the errors of each group as a text table, and why rows were skipped."""
    lines = [f"{'group':{_NAME_WIDTH}}" + "".join(f"{name:>8}" for name in _COLUMNS.split())]
    shown = [group for group in validation.groups if group.statistics or not group.by]
    lines += [_line(group) for group in shown]
    for group in validation.groups[:1]:
        lines += ["", *_choices(group)]
    lines += ["", *_skipped(validation), *_warnings(validation)]
    return "\n".join(lines)


def _line(group: Group) -> str:
    name = group.name
    if group.quantity is Quantity.PEAK_MEMORY:
        name = f"memory: {name}"
    cells = [str(group.rows), *_cells(group.statistics)]
    without = _cells(group.without_slow)
    cells += [str(group.slow), *without[:4], _number(group.rank_correlation)]
    return f"{name[: _NAME_WIDTH - 2]:{_NAME_WIDTH}}" + "".join(f"{cell:>8}" for cell in cells)


def _cells(statistics: Statistics | None) -> list[str]:
    if statistics is None:
        return ["0", *["-"] * 5]
    sizes = (statistics.median, statistics.mean, statistics.p90)
    signed = (statistics.worst, statistics.bias)
    return [
        str(statistics.count),
        *(f"{value:.1%}" for value in sizes),
        *(f"{value:+.1%}" for value in signed),
    ]


def _choices(group: Group) -> list[str]:
    lines = []
    if group.regret:
        regret = group.regret
        lines.append(
            f"choice of layout, {regret.problems} problems: top-1 regret mean "
            f"{regret.top1_mean:.1%} worst {regret.top1_worst:.1%}; top-5 mean "
            f"{regret.top5_mean:.1%} worst {regret.top5_worst:.1%}; rank correlation "
            f"{_number(regret.rank_correlation)}"
        )
    if group.feasibility:
        seen = group.feasibility
        lines.append(
            f"memory: of {seen.ran_fits + seen.ran_does_not_fit} rows that ran "
            f"{seen.ran_does_not_fit} are predicted not to fit; of "
            f"{seen.failed_fits + seen.failed_does_not_fit} that failed "
            f"{seen.failed_does_not_fit} are predicted not to fit"
        )
    return lines


def _skipped(validation: Validation) -> Sequence[str]:
    reasons = Counter(row.reason for row in validation.rows if row.status is Status.SKIPPED)
    lines = [f"{reasons.total()} of {len(validation.rows)} rows were not predicted"]
    for reason, count in reasons.most_common(_REASONS):
        lines.append(f"{count:6} x {reason[:_REASON_WIDTH]}")
    if len(reasons) > _REASONS:
        lines.append(f"       and {len(reasons) - _REASONS} other reasons")
    return lines


def _warnings(validation: Validation) -> Sequence[str]:
    fitted = validation.provenance.get("fitted_on_this_file")
    if not isinstance(fitted, list) or not fitted:
        return []
    return ["not a test: constants were fitted on rows of this file: " + ", ".join(fitted)]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
