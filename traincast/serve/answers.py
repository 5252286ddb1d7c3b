"""Answers as parts of the page; text from the input stays text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from simulator.errors import Problem
from traincast.serve.evaluation import Answer, Card
from traincast.serve.fields import FormField

_CONFIG = {"displaylogo": False, "responsive": True, "showSendToCloud": False}


def problem_lines(problems: Sequence[Problem]) -> list[html.Pre]:
    """Return every problem in full."""
    return [html.Pre(str(problem), className="problem") for problem in problems]


def field_errors(problems: Sequence[Problem], fields: Sequence[FormField]) -> list[str]:
    """Return what is said at each field: the rules broken by its key."""
    by_key: dict[str, list[str]] = {}
    for problem in problems:
        said = f"{problem.rule}: {problem.fix}" if problem.fix else problem.rule
        by_key.setdefault(problem.key, []).append(said)
    return ["; ".join(by_key.get(field.key, ())) for field in fields]


def cards_of(answer: Answer) -> list[html.Div]:
    """Return the large numbers."""
    return [_card(card) for card in answer.cards]


def figures_of(answer: Answer) -> list[Any]:
    """Return the figures, drawn by plotly."""
    return [
        dcc.Graph(figure={**each}, config=_CONFIG, className="figure") for each in answer.figures
    ]


def notes_of(answer: Answer) -> list[html.P]:
    """Return assumptions and warnings."""
    return [html.P(note) for note in answer.notes]


def _card(card: Card) -> html.Div:
    return html.Div(
        [
            html.Div(card.name, className="name"),
            html.Div(card.value, className="value"),
            html.Div(card.note, className="note"),
        ],
        className=f"card {card.tone}".strip(),
    )
