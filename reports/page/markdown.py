"""A document as Markdown: what others have written in it is text, never markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports.figure_table import figure_columns
from reports.page.document import Document, Part
from reports.section import Section
from reports.table import Column
from reports.words import Words, words_in

_SIGNS = r"\`*_{}[]<>|#!~$&"
_MOST_ROWS = 60
"""Rows of a figure's numbers that stand in a text."""


def markdown_of(document: Document) -> str:
    """Return the report as Markdown; figures are tables of their numbers."""
    words = words_in(document.language)
    blocks = [f"# {escaped(document.title)}"]
    if document.summary:
        blocks.append(f"## {escaped(words('Summary'))}")
    for digest in document.summary:
        blocks += [f"### {escaped(digest.title)}"] if digest.title else []
        for statement in digest.statements:
            lines = "\n".join(f"* {escaped(sentence)}" for sentence in statement.sentences)
            blocks += [f"**{escaped(statement.title)}**", lines]
    for part in document.parts:
        blocks += _part(part, words)
    return "\n\n".join(blocks) + "\n"


def escaped(text: str) -> str:
    r"""Return text in which Markdown sees no markup.

    >>> escaped("a_b <script>")
    'a\\_b \\<script\\>'
    """
    return "".join(f"\\{sign}" if sign in _SIGNS else sign for sign in text)


def _part(part: Part, words: Words) -> Iterator[str]:
    yield f"## {escaped(part.title)}"
    yield escaped(words("From {file}", file=part.source))
    for section in part.sections:
        yield from section_blocks(section)
    for figure in part.figures:
        columns = figure_columns(figure, words)
        if columns and len(columns[0].cells) <= _MOST_ROWS:
            yield f"### {escaped(figure.title)}"
            if figure.caption:
                yield escaped(figure.caption)
            yield _table(columns)


def section_blocks(section: Section, level: int = 3) -> Iterator[str]:
    """Yield the heading, the sentences and the table of a section."""
    yield f"{'#' * level} {escaped(section.title)}"
    yield from map(escaped, section.text)
    if section.columns:
        yield _table(section.columns)


def _table(columns: Sequence[Column]) -> str:
    rules = ["---:" if column.justify == "right" else "---" for column in columns]
    titles = [column.title for column in columns]
    rows = zip(*(column.cells for column in columns), strict=True)
    lines = ["| " + " | ".join(map(escaped, line)) + " |" for line in (titles, *rows)]
    return "\n".join([lines[0], "|" + "|".join(rules) + "|", *lines[1:]])
