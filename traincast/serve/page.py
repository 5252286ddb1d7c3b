"""What stands on the page before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from dash import dcc, html

from traincast.serve.editing import MAX_TEXT_BYTES
from traincast.serve.fields import FieldGroup, FieldKind, FormField

_TYPING_SECONDS = 0.4
"""A field counts as changed once nothing was typed for so long."""
_ALWAYS_OPEN = ("Model", "Cluster")
_COMMON = {
    *("job.global_batch_size", "job.seq_length", "job.precision", "job.recipe", "job.tokens"),
    *("job.stack", "layout.tp", "layout.pp", "layout.vpp", "layout.cp", "layout.ep", "layout.dp"),
    *("layout.micro_batch_size", "layout.zero_stage", "layout.recompute", "layout.schedule"),
    "layout.sequence_parallel",
}
"""Keys that are always in sight; the others of their table, also new ones, are one click away."""


def page(form: Sequence[FieldGroup], text: str, starts: Sequence[str], name: str) -> html.Div:
    """Return the page with a scenario's text; `starts` are files to begin with."""
    return html.Div(
        [
            dcc.Store(id="page", data=uuid4().hex),
            dcc.Store(id="best"),
            dcc.Download(id="file"),
            html.Header([html.H1("traincast"), html.P("What would this training run do?")]),
            html.Main(
                [
                    html.Section(
                        [_source(starts), *map(_group, form)], className="form", id="form"
                    ),
                    html.Section(
                        [_results(), _editor(text, name)], className="results", id="results"
                    ),
                ]
            ),
        ]
    )


def field_id(field: FormField) -> dict[str, str]:
    """Return the id of a field's input."""
    return {"type": "field", "key": field.key}


def error_id(field: FormField) -> dict[str, str]:
    """Return the id of what is said of a field."""
    return {"type": "error", "key": field.key}


def _source(starts: Sequence[str]) -> html.Div:
    choose = dcc.Dropdown(
        id="start", options=list(starts), placeholder="Begin with a file of this folder"
    )
    drop = dcc.Upload(
        "Drop a scenario.toml here, or click to choose one",
        id="upload",
        className="drop",
        max_size=MAX_TEXT_BYTES,
        accept=".toml",
    )
    return html.Div([choose, drop, html.Div(id="notice", role="alert")], className="source")


def _group(group: FieldGroup) -> html.Fieldset:
    common = [f for f in group.fields if group.title in _ALWAYS_OPEN or f.key in _COMMON]
    others = [f for f in group.fields if f not in common]
    children: list[Any] = [html.Legend(group.title), html.Div(_fields(common), className="grid")]
    if others:
        more = html.Div(_fields(others), className="grid")
        children.append(html.Details([html.Summary(f"{len(others)} more keys"), more]))
    return html.Fieldset(children)


def _fields(fields: Sequence[FormField]) -> list[html.Div]:
    return [_field(field) for field in fields]


def _field(field: FormField) -> html.Div:
    return html.Div(
        [
            html.Label(field.name, title=field.help),
            _input(field),
            html.Small(field.help, className="help"),
            html.Div(id=error_id(field), className="error"),
        ],
        className="field",
        title=field.help,
    )


def _input(field: FormField) -> Any:
    if field.kind in (FieldKind.CHOICE, FieldKind.SWITCH):
        return dcc.Dropdown(
            id=field_id(field), options=list(field.choices), placeholder=field.default
        )
    names = f"names-{field.key.replace('.', '-')}"
    box = dcc.Input(
        id=field_id(field),
        type="number" if field.kind is FieldKind.NUMBER else "text",
        step="any",
        debounce=_TYPING_SECONDS,
        placeholder=field.default,
        list=names if field.choices else "",
        autoComplete="off",
    )
    if not field.choices:
        return box
    known = [html.Option(value=each) for each in field.choices]
    return html.Div([box, html.Datalist(known, id=names)])


def _results() -> html.Div:
    return html.Div(
        [
            html.Div(id="problems", role="alert"),
            html.Div(id="cards", className="cards"),
            html.Div(id="figures"),
            html.Div(
                [
                    html.Div(id="map"),
                    html.Button("Take the best layout", id="take", disabled=True),
                ],
                className="map",
            ),
            html.Div(id="notes", className="notes"),
        ]
    )


def _editor(text: str, name: str) -> html.Div:
    return html.Div(
        [
            html.H2("scenario.toml"),
            dcc.Textarea(id="toml", value=text, spellCheck="false", maxLength=MAX_TEXT_BYTES),
            html.Div(
                [
                    html.Button("Download", id="download"),
                    dcc.Input(id="name", type="text", value=name, autoComplete="off"),
                    dcc.Checklist(["replace"], [], id="replace"),
                    html.Button("Save in the folder", id="save"),
                ],
                className="row",
            ),
            html.Div(id="saved", role="status"),
        ],
        className="editor",
    )
