"""Errors of pairs of measured and predicted numbers; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from calibrate.validation.records import (
    Feasibility,
    Pair,
    Regret,
    RowResult,
    Statistics,
)

SLOW = 2.0
"""Measured over predicted time above which no model of a healthy run can explain a row."""
Candidate = tuple[Pair, bool]
"""A layout's times, and whether it is predicted to fit."""
Candidates = Sequence[Candidate]
_MIN_RANKED = 3
_P90 = 90
_TOP = 5


def statistics_of(pairs: Sequence[Pair]) -> Statistics | None:
    """Return the errors of `pairs`, or None where there are none.

    >>> s = statistics_of([Pair(measured=1.0, predicted=1.1), Pair(measured=1.0, predicted=0.7)])
    >>> round(s.mean, 3), round(s.worst, 3), round(s.bias, 3)
    (0.2, -0.3, -0.1)
    """
    if not pairs:
        return None
    signed = np.array([pair.signed_error for pair in pairs])
    size = np.abs(signed)
    return Statistics(
        count=len(pairs),
        median=float(np.median(size)),
        mean=float(np.mean(size)),
        p90=float(np.percentile(size, _P90)),
        worst=float(signed[int(np.argmax(size))]),
        bias=float(np.median(signed)),
    )


def is_slow(pair: Pair) -> bool:
    """Return whether a row was measured more than `SLOW` times slower than predicted."""
    return pair.measured > SLOW * pair.predicted


def rank_correlation(pairs: Sequence[Pair]) -> float | None:
    """Return Spearman's coefficient, ties ranked by their mean; None where it has no meaning."""
    if len(pairs) < _MIN_RANKED:
        return None
    measured = _ranks([pair.measured for pair in pairs])
    predicted = _ranks([pair.predicted for pair in pairs])
    if np.ptp(measured) == 0 or np.ptp(predicted) == 0:
        return None
    return float(np.corrcoef(measured, predicted)[0, 1])


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """Return the rank of each value from 1; equal values share the mean of their ranks.

    >>> _ranks([3.0, 1.0, 3.0]).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, counts = np.unique(np.array(values), return_inverse=True, return_counts=True)
    mean = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(mean[place], dtype=np.float64)


def regret_of(rows: Iterable[RowResult]) -> Regret | None:
    """Return the regret of choosing the layout that is predicted to be fastest.

    Those predicted to fit in memory come first.
    """
    choices = choices_of(rows)
    if not choices:
        return None
    top1 = [regret(choice, 1) for choice in choices]
    top5 = [regret(choice, _TOP) for choice in choices]
    ranked = [rank_correlation([pair for pair, _ in choice]) for choice in choices]
    known = [value for value in ranked if value is not None]
    calm = [number for number, choice in enumerate(choices) if is_calm(choice)]
    return Regret(
        problems=len(choices),
        top1_mean=float(np.mean(top1)),
        top1_worst=max(top1),
        top5_mean=float(np.mean(top5)),
        top5_worst=max(top5),
        calm=len(calm),
        top1_median=float(np.median([top1[n] for n in calm])) if calm else None,
        top5_median=float(np.median([top5[n] for n in calm])) if calm else None,
        rank_correlation=float(np.median(known)) if known else None,
    )


def choices_of(rows: Iterable[RowResult]) -> list[Candidates]:
    """Return for each problem the layouts between which there was a choice, three at least.

    Only layouts that were measured and predicted count; repeated measurements of a layout count as
    one, by their median.
    """
    problems: dict[tuple[str, ...], dict[str, list[RowResult]]] = {}
    for row in rows:
        if row.choice is not None and row.pair is not None:
            layouts = problems.setdefault(row.choice.problem, {})
            layouts.setdefault(row.choice.layout, []).append(row)
    return [
        [_median(same) for same in layouts.values()]
        for layouts in problems.values()
        if len(layouts) >= _MIN_RANKED
    ]


def feasibility_of(rows: Iterable[RowResult]) -> Feasibility | None:
    """Return how often a run that failed, and one that did not, is predicted to fit."""
    seen = [(row.ran, row.feasible) for row in rows if None not in (row.ran, row.feasible)]
    if not seen:
        return None
    return Feasibility(
        ran_fits=seen.count((True, True)),
        ran_does_not_fit=seen.count((True, False)),
        failed_fits=seen.count((False, True)),
        failed_does_not_fit=seen.count((False, False)),
    )


def _median(same: Sequence[RowResult]) -> Candidate:
    pairs = [row.pair for row in same if row.pair is not None]
    measured = float(np.median([pair.measured for pair in pairs]))
    return Pair(measured=measured, predicted=pairs[0].predicted), bool(same[0].feasible)


def is_calm(choice: Candidates) -> bool:
    """Return whether runs that no model explains are at most half of a problem's."""
    return 2 * sum(is_slow(pair) for pair, _ in choice) <= len(choice)


def regret(choice: Candidates, top: int) -> float:
    """Return how much slower than the best the best of the `top` first choices was measured."""
    ranked = sorted(choice, key=lambda each: (not each[1], each[0].predicted))
    best = min(pair.measured for pair, _ in choice)
    return min(pair.measured for pair, _ in ranked[:top]) / best - 1
