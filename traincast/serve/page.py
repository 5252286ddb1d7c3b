"""What stands on the page before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from dash import dcc, html

from simulator.errors import Problem
from traincast.serve.editing import MAX_TEXT_BYTES
from traincast.serve.evaluation import Card, Drawing
from traincast.serve.fields import FieldGroup, FieldKind, FormField

_TYPING_SECONDS = 0.4
"""A field counts as changed once nothing was typed for so long."""
_CONFIG: dcc.Graph.Config = {"displaylogo": False, "responsive": True, "showSendToCloud": False}
_ON_PAGE = {
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"color": "#808790", "size": 12, "family": "system-ui, sans-serif"},
    "margin": {"l": 60, "r": 20, "t": 20, "b": 50},
}
"""A layout's ground and ink, legible on a light and on a dark page."""
_ALWAYS_OPEN = ("Model", "Cluster")
_COMMON = {
    *("job.global_batch_size", "job.seq_length", "job.precision", "job.recipe", "job.tokens"),
    *("job.stack", "layout.tp", "layout.pp", "layout.vpp", "layout.cp", "layout.ep", "layout.dp"),
    *("layout.micro_batch_size", "layout.zero_stage", "layout.recompute", "layout.schedule"),
    "layout.sequence_parallel",
}
"""Keys that are always in sight; the others of their table, also new ones, are one click away."""


def page(form: Sequence[FieldGroup], text: str, name: str) -> html.Div:
    """Return the page with a scenario's text, which is saved as the file `name`."""
    return html.Div(
        [
            dcc.Store(id="page", data=uuid4().hex),
            dcc.Store(id="asked"),
            dcc.Store(id="best"),
            html.Header([html.H1("traincast"), html.P("What would this training run do?")]),
            html.Main(
                [
                    html.Section([*map(_group, form)], className="form"),
                    html.Section([_results(), _editor(text, name)], className="results"),
                ]
            ),
        ]
    )


def in_order(form: Sequence[FieldGroup]) -> list[FormField]:
    """Return all fields as they stand on the page, which is how Dash lists their values."""
    return [field for group in form for part in _split(group) for field in part]


def problem_parts(problems: Sequence[Problem]) -> list[html.Pre]:
    """Return every problem in full."""
    return [html.Pre(str(problem), className="problem") for problem in problems]


def card_parts(cards: Sequence[Card]) -> list[html.Div]:
    """Return the large numbers."""
    return [
        html.Div(
            [
                html.Div(card.name, className="name"),
                html.Div(card.value, className="value"),
                html.Div(card.note, className="note"),
            ],
            className=f"card {card.tone}".strip(),
        )
        for card in cards
    ]


def figure_parts(figures: Sequence[Drawing]) -> list[html.Div]:
    """Return the figures, drawn by plotly on the page's ground, with their titles."""
    return [
        html.Div(
            [
                html.H2(each.title),
                dcc.Graph(
                    figure={**each.plotly, "layout": {**each.plotly["layout"], **_ON_PAGE}},
                    config=_CONFIG,
                ),
                html.P(each.caption),
            ],
            className="figure",
        )
        for each in figures
    ]


def note_parts(notes: Sequence[str]) -> list[html.P]:
    """Return assumptions and warnings."""
    return [html.P(note) for note in notes]


def _group(group: FieldGroup) -> html.Fieldset:
    common, others = _split(group)
    children: list[Any] = [html.Legend(group.title), html.Div(_fields(common), className="grid")]
    if others:
        more = html.Div(_fields(others), className="grid")
        children.append(html.Details([html.Summary(f"{len(others)} more keys"), more]))
    return html.Fieldset(children)


def _split(group: FieldGroup) -> tuple[list[FormField], list[FormField]]:
    common = [f for f in group.fields if group.title in _ALWAYS_OPEN or f.key in _COMMON]
    return common, [f for f in group.fields if f not in common]


def _fields(fields: Sequence[FormField]) -> list[html.Div]:
    return [_field(field) for field in fields]


def _field(field: FormField) -> html.Div:
    return html.Div(
        [
            html.Label(field.name, title=field.help),
            _input(field),
            html.Small(field.help, className="help"),
        ],
        className="field",
        title=field.help,
    )


def _input(field: FormField) -> Any:
    if field.kind in (FieldKind.CHOICE, FieldKind.SWITCH):
        return dcc.Dropdown(
            id=_field_id(field), options=list(field.choices), placeholder=field.default
        )
    names = f"names-{field.key.replace('.', '-')}"
    box = dcc.Input(
        id=_field_id(field),
        type="text",  # of the kinds of input, a number without a value is an error in Dash's script
        inputMode="numeric" if field.kind is FieldKind.NUMBER else None,
        debounce=_TYPING_SECONDS,
        placeholder=field.default,
        list=names if field.choices else "",
        autoComplete="off",
    )
    if not field.choices:
        return box
    known = [html.Option(value=each) for each in field.choices]
    return html.Div([box, html.Datalist(known, id=names)])


def _field_id(field: FormField) -> dict[str, str]:
    return {"type": "field", "key": field.key}


def _results() -> html.Div:
    return html.Div(
        [
            html.Div(id="problems", role="alert"),
            html.Div(id="cards", className="cards"),
            html.Div(id="figures"),
            html.Div(
                [
                    html.Div(id="map"),
                    html.Button("Take the fastest layout", id="take", disabled=True),
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
            dcc.Textarea(id="toml", value=text, spellCheck=False, maxLength=MAX_TEXT_BYTES),
            html.Div(id="notice", role="alert"),
            html.Div(
                [
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
