"""A report as data: what it concludes, and of every result its tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.charts import Figure
from reports.page.sections import sections_of_result
from reports.page.summary import Digest, summary_of
from reports.page.titles import subject_of, title_of
from reports.quantities import plain
from reports.report_figures import figures_of_result
from reports.result_files import ResultFile, ResultKind
from reports.section import Section
from reports.words import Language, Words, words_in

KIND_TITLES = {
    ResultKind.STEP: "Simulated step",
    ResultKind.PLAN: "Plan",
    ResultKind.EXPLAIN: "Plan and what would change it",
    ResultKind.GOODPUT: "Whole run",
    ResultKind.COMPARE: "Comparison",
    ResultKind.SWEEP: "Sweep",
    ResultKind.VALIDATION: "Validation",
    ResultKind.CALIBRATION: "Calibration",
    ResultKind.TRACE_COMPARISON: "Forecast beside a real trace",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a report says of one result."""

    name: str
    """Unique in the document; what links point at."""
    title: str
    source: str
    """The result's file."""
    sections: tuple[Section, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report."""

    title: str
    language: Language
    summary: tuple[Digest, ...]
    parts: tuple[Part, ...]


def document_of(
    files: Sequence[ResultFile], language: Language = Language.ENGLISH, title: str = ""
) -> Document:
    """Return the report of results, in their order; the title is by default the first one's."""
    words = words_in(language)
    return Document(
        title=plain(title) or title_of(files[0], words),
        language=language,
        summary=summary_of(files, words),
        parts=tuple(_part(number, file, words) for number, file in enumerate(files, start=1)),
    )


def _part(number: int, file: ResultFile, words: Words) -> Part:
    kind = words(KIND_TITLES[file.kind])
    return Part(
        name=f"{file.kind.value.replace('_', '-')}-{number}",
        title=words("{kind}: {title}", kind=kind, title=subject_of(file)),
        source=plain(str(file.path)),
        sections=sections_of_result(file.result, words),
        figures=figures_of_result(file.result, words),
    )
