"""The decision in words: what to take, its numbers, why, the risk, and what stands behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reports.page.said.basis import assumed, calibrated, validated
from reports.page.said.measured import of_calibration, of_trace, of_validation
from reports.page.said.plan import of_explanation, of_plan
from reports.page.said.rows import of_comparison, of_sweep
from reports.page.said.run import of_goodput
from reports.page.said.step import of_step
from reports.page.titles import by_scenario, title_of
from reports.page.topics import Said, Topic
from reports.result_files import ResultFile, ResultKind
from reports.words import Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One topic of the summary."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The summary of results that belong together; the title is empty where there are no others."""

    title: str
    statements: tuple[Statement, ...]


TITLES = {
    Topic.PICK: "The pick",
    Topic.WHY: "Why",
    Topic.RISK: "The risk",
    Topic.ASSUMED: "What was assumed",
    Topic.CALIBRATED: "What is measured, fitted or only nominal",
    Topic.VALIDATED: "How it was validated",
}
_OF_KIND: dict[ResultKind, Callable[[Any, Words], Iterator[Said]]] = {
    ResultKind.STEP: of_step,
    ResultKind.PLAN: of_plan,
    ResultKind.EXPLAIN: of_explanation,
    ResultKind.GOODPUT: of_goodput,
    ResultKind.COMPARE: of_comparison,
    ResultKind.SWEEP: of_sweep,
    ResultKind.VALIDATION: of_validation,
    ResultKind.CALIBRATION: of_calibration,
    ResultKind.TRACE_COMPARISON: of_trace,
}


def summary_of(files: Sequence[ResultFile], words: Words) -> tuple[Digest, ...]:
    """Return what results say, one digest for all of one scenario, topic by topic."""
    groups = by_scenario(files)
    return tuple(
        Digest(
            title=title_of(group[0], words) if len(groups) > 1 else "",
            statements=_statements(group, words),
        )
        for group in groups
    )


def _statements(files: Sequence[ResultFile], words: Words) -> tuple[Statement, ...]:
    """Return what some results say together; each sentence once."""
    said = [each for file in files for each in _OF_KIND[file.kind](file.result, words)]
    for basis in (assumed, calibrated, validated):
        said += basis(files, words)
    return tuple(
        Statement(title=words(title), sentences=sentences)
        for topic, title in TITLES.items()
        if (sentences := tuple(dict.fromkeys(text for about, text in said if about is topic)))
    )
