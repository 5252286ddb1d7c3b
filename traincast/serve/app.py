"""The page as a Dash application: what changes what."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, no_update

from simulator.errors import InputError, Problem, TraincastError
from simulator.files import read_text
from traincast.serve import answers
from traincast.serve.editing import MAX_TEXT_BYTES, values_of, with_layout, with_value
from traincast.serve.evaluation import Answer, Asked, Question
from traincast.serve.fields import FormField, scenario_form
from traincast.serve.page import page
from traincast.serve.saving import save
from traincast.serve.worker import Newest, Worker

_PAUSE = 0.3
"""Seconds without a further change before a scenario is computed."""
_FIELDS = {"type": "field", "key": ALL}
_ERRORS = {"type": "error", "key": ALL}
_MOST_STARTS = 200
"""Files of the folder that are offered to begin with."""


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
    fields = [field for group in form for field in group.fields]
    app = Dash(
        "traincast.serve",
        title="traincast",
        update_title="",
        assets_folder=str(Path(__file__).parent / "assets"),
        serve_locally=True,
        suppress_callback_exceptions=False,
    )
    app.layout = lambda: page(form, served.text, starts(served.folder), served.name)
    _connect_form(app, fields, served)
    _connect_answers(app, fields, served)
    _connect_files(app, served)
    return app


def starts(folder: Path) -> list[str]:
    """Return the names of the TOML files of a folder."""
    return sorted(each.name for each in folder.glob("*.toml"))[:_MOST_STARTS]


def changed_text(
    trigger: Any, text: str, values: Mapping[str, Any], fields: Sequence[FormField]
) -> str:
    """Return a scenario's text after a change of the field `trigger`, or of no field."""
    if isinstance(trigger, Mapping):
        field = next(each for each in fields if each.key == trigger["key"])
        return with_value(text, field, values[field.key])
    return text


def uploaded_text(contents: str) -> str:
    """Return the text of an uploaded file, which a browser sends as a data URL."""
    try:
        data = base64.b64decode(contents.partition(",")[2], validate=True)
        if len(data) > MAX_TEXT_BYTES:
            raise InputError(Problem(where="upload", rule=f"at most {MAX_TEXT_BYTES} bytes"))
        return data.decode("utf-8-sig")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InputError(Problem(where="upload", rule=f"is not a text file: {error}")) from error


def start_text(name: str, folder: Path) -> str:
    """Return the text of a file that `starts` offers."""
    if name not in starts(folder):
        raise InputError(Problem(where=name, rule="is not offered", fix="a file of the list"))
    return read_text(folder / name, MAX_TEXT_BYTES)


def _connect_form(app: Dash, fields: Sequence[FormField], served: Served) -> None:
    keys = [field.key for field in fields]

    @app.callback(  # type: ignore[untyped-decorator, unused-ignore]
        Output("toml", "value"),
        Output(_FIELDS, "value"),
        Output("notice", "children"),
        Input("toml", "value"),
        Input(_FIELDS, "value"),
        Input("upload", "contents"),
        Input("start", "value"),
        Input("take", "n_clicks"),
        State("best", "data"),
    )
    def synchronise(
        text: str, values: list[Any], contents: str, start: str, _: int, best: Mapping[str, Any]
    ) -> tuple[Any, list[Any], Any]:
        try:
            match ctx.triggered_id:
                case "upload":
                    new = uploaded_text(contents)
                case "start":
                    new = start_text(start, served.folder) if start else text
                case "take":
                    new = with_layout(text, best) if best else text
                case trigger:
                    new = changed_text(trigger, text, dict(zip(keys, values, strict=True)), fields)
            shown = values_of(new, fields)
        except TraincastError as error:
            return no_update, [no_update] * len(fields), answers.problem_lines(error.problems)
        return (no_update if new == text else new), shown, []


def _connect_answers(app: Dash, fields: Sequence[FormField], served: Served) -> None:
    estimates, maps = Newest(), Newest()

    @app.callback(  # type: ignore[untyped-decorator, unused-ignore]
        Output("problems", "children"),
        Output("cards", "children"),
        Output("figures", "children"),
        Output("notes", "children"),
        Output(_ERRORS, "children"),
        Input("toml", "value"),
        State("page", "data"),
    )
    def estimate(text: str, name: str) -> tuple[Any, ...]:
        found = _ask(served, Question.ESTIMATE, text, estimates.claim(name))
        if found is None:
            return (*[no_update] * 4, [no_update] * len(fields))
        return (
            answers.problem_lines(found.problems),
            answers.cards_of(found),
            answers.figures_of(found),
            answers.notes_of(found),
            answers.field_errors(found.problems, fields),
        )

    @app.callback(  # type: ignore[untyped-decorator, unused-ignore]
        Output("map", "children"),
        Output("best", "data"),
        Output("take", "disabled"),
        Input("toml", "value"),
        State("page", "data"),
    )
    def draw_map(text: str, name: str) -> tuple[Any, ...]:
        found = _ask(served, Question.MAP, text, maps.claim(name))
        if found is None:
            return (no_update,) * 3
        drawn = [*answers.figures_of(found), *answers.notes_of(found)]
        return drawn, dict(found.layout), not found.layout


def _ask(
    served: Served, question: Question, text: str, outdated: Callable[[], bool]
) -> Answer | None:
    time.sleep(_PAUSE)
    asked = Asked(question=question, text=text, folder=str(served.folder))
    return served.workers[question].ask(asked, outdated)


def _connect_files(app: Dash, served: Served) -> None:
    @app.callback(  # type: ignore[untyped-decorator, unused-ignore]
        Output("file", "data"),
        Input("download", "n_clicks"),
        State("toml", "value"),
        prevent_initial_call=True,
    )
    def download(_: int, text: str) -> dict[str, Any]:
        return {"content": text, "filename": "scenario.toml", "type": "text/plain"}

    @app.callback(  # type: ignore[untyped-decorator, unused-ignore]
        Output("saved", "children"),
        Input("save", "n_clicks"),
        State("toml", "value"),
        State("name", "value"),
        State("replace", "value"),
        prevent_initial_call=True,
    )
    def write(_: int, text: str, name: str, replace: list[str]) -> Any:
        try:
            path = save(text, name or "", served.folder, replace=bool(replace))
        except TraincastError as error:
            return answers.problem_lines(error.problems)
        return f"saved as {path.name}"
