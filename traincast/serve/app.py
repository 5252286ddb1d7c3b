"""The page as a Dash application: what changes what."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, no_update

from simulator.errors import TraincastError
from traincast.serve.editing import values_of, with_layout, with_value
from traincast.serve.evaluation import Answer, Asked, Question
from traincast.serve.fields import FormField, scenario_form
from traincast.serve.page import (
    card_parts,
    figure_parts,
    in_order,
    note_parts,
    page,
    problem_parts,
)
from traincast.serve.saving import save
from traincast.serve.worker import Worker

_PAUSE = 0.3
"""Seconds without a further change before a scenario is computed."""
_FIELDS = {"type": "field", "key": ALL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a page is made with."""

    text: str
    name: str
    """Of the file that it is saved as."""
    folder: Path
    workers: Mapping[Question, Worker]


def make_app(served: Served) -> Dash:
    """Return the application; it asks nothing of any other host."""
    form = scenario_form()
    app = Dash(
        "traincast.serve",
        title="traincast",
        update_title="",
        assets_folder=str(Path(__file__).parent / "assets"),
        serve_locally=True,
    )
    app.layout = lambda: page(form, served.text, served.name)
    _connect_form(app, in_order(form))
    _connect_answers(app, served)
    _connect_file(app, served)
    return app


def changed_text(
    cause: Any,
    text: str,
    values: Sequence[Any],
    best: Mapping[str, Any] | None,
    fields: Sequence[FormField],
) -> str:
    """Return a scenario's text after a change.

    `cause` is the id of what changed: of a field, whose value goes into the text; "take", for which
    the best layout does; or of the text itself. `values` are those of `fields`.

    Raises:
        InputError: the text is no TOML.
    """
    if cause == "take" and best:
        return with_layout(text, best)
    if isinstance(cause, Mapping):
        pairs = zip(fields, values, strict=True)
        field, value = next(pair for pair in pairs if pair[0].key == cause["key"])
        return with_value(text, field, value)
    return text


def _connect_form(app: Dash, fields: Sequence[FormField]) -> None:
    """Keep form and text equal; "asked" is the text that the answers are of."""

    @app.callback(  # type: ignore[untyped-decorator, unused-ignore]
        Output("toml", "value"),
        Output(_FIELDS, "value"),
        Output("asked", "data"),
        Output("notice", "children"),
        Input("toml", "value"),
        Input(_FIELDS, "value"),
        Input("take", "n_clicks"),
        State("best", "data"),
    )
    def synchronise(
        text: str, values: list[Any], _: int, best: Mapping[str, Any] | None
    ) -> tuple[Any, ...]:
        cause = ctx.triggered_id
        try:
            new = changed_text(cause, text, values, best, fields)
            # The field that was changed, and another that is being typed in, stay as they are.
            in_form = isinstance(cause, Mapping)
            shown = [no_update] * len(fields) if in_form else values_of(new, fields)
        except TraincastError as error:
            return no_update, [no_update] * len(fields), text, problem_parts(error.problems)
        return (no_update if new == text else new), shown, new, []


def _connect_answers(app: Dash, served: Served) -> None:
    def ask(question: Question, text: str, name: str) -> Answer | None:
        time.sleep(_PAUSE)
        asked = Asked(question=question, text=text, folder=str(served.folder))
        return served.workers[question].ask(asked, name)

    @app.callback(  # type: ignore[untyped-decorator, unused-ignore]
        Output("problems", "children"),
        Output("cards", "children"),
        Output("figures", "children"),
        Output("notes", "children"),
        Input("asked", "data"),
        State("page", "data"),
        prevent_initial_call=True,
    )
    def estimate(text: str, name: str) -> tuple[Any, ...]:
        found = ask(Question.ESTIMATE, text, name)
        if found is None:
            return (no_update,) * 4
        return (
            problem_parts(found.problems),
            card_parts(found.cards),
            figure_parts(found.figures),
            note_parts(found.notes),
        )

    @app.callback(  # type: ignore[untyped-decorator, unused-ignore]
        Output("map", "children"),
        Output("best", "data"),
        Output("take", "disabled"),
        Input("asked", "data"),
        State("page", "data"),
        prevent_initial_call=True,
    )
    def draw_map(text: str, name: str) -> tuple[Any, ...]:
        found = ask(Question.MAP, text, name)
        if found is None:
            return (no_update,) * 3
        parts = [
            *problem_parts(found.problems),
            *figure_parts(found.figures),
            *note_parts(found.notes),
        ]
        return parts, dict(found.layout), not found.layout


def _connect_file(app: Dash, served: Served) -> None:
    @app.callback(  # type: ignore[untyped-decorator, unused-ignore]
        Output("saved", "children"),
        Input("save", "n_clicks"),
        State("toml", "value"),
        State("name", "value"),
        State("replace", "value"),
        prevent_initial_call=True,
    )
    def write(_: int, text: str, name: str | None, replace: list[str]) -> Any:
        try:
            path = save(text, name or "", served.folder, replace=bool(replace))
        except TraincastError as error:
            return problem_parts(error.problems)
        return f"saved as {path.name}"
