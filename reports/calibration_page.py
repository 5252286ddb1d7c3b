"""A calibration report as one file to share: Markdown, or HTML that loads nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files

from calibrate.summary import Summary
from reports.calibration_figures import figures_of
from reports.calibration_sections import report_sections
from reports.section import Section

_TEMPLATE = "calibration.html.j2"
_MARKDOWN_SIGNS = r"\`*_{}[]<>|#!~$&"


def title_of(summary: Summary) -> str:
    """Return the title of a report."""
    return f"Calibration of {summary.profile.name}"


def calibration_markdown(summary: Summary) -> str:
    """Return the report as Markdown; what others have written in it is text, never markup."""
    sections = report_sections(summary)
    parts = [f"# {escaped(title_of(summary))}", *(_markdown(section) for section in sections)]
    return "\n\n".join(parts) + "\n"


def calibration_html(summary: Summary) -> str:
    """Return the report as an HTML page with its figures inside."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    from reports.drawing import svg_of

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(files("reports").joinpath(_TEMPLATE).read_text("utf-8"))
    drawn = [
        # Drawn here, by a library that escapes the text in it.
        Markup(svg_of(figure, f"figure-{number}"))
        for number, figure in enumerate(figures_of(summary))
    ]
    sections = report_sections(summary)
    return template.render(title=title_of(summary), sections=sections, figures=drawn) + "\n"


def escaped(text: str) -> str:
    r"""Return text in which Markdown sees no markup.

    >>> escaped("a_b <script>")
    'a\\_b \\<script\\>'
    """
    return "".join(f"\\{sign}" if sign in _MARKDOWN_SIGNS else sign for sign in text)


def _markdown(section: Section) -> str:
    text = [escaped(sentence) for sentence in section.text]
    return "\n\n".join([f"## {escaped(section.title)}", *text, *_table(section)])


def _table(section: Section) -> Iterator[str]:
    if not section.columns:
        return
    rules = ["---:" if column.justify == "right" else "---" for column in section.columns]
    lines: list[Sequence[str]] = [section.titles, *section.rows]
    drawn = ["| " + " | ".join(escaped(cell) for cell in line) + " |" for line in lines]
    yield "\n".join([drawn[0], "|" + "|".join(rules) + "|", *drawn[1:]])
