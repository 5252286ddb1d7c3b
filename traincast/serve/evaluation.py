"""What the page shows of a scenario: plain values, computed in a process of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.errors import Problem, TraincastError

if TYPE_CHECKING:
    from planner.result import MapBest
    from reports.charts import Figure
    from simulator.parallel.layout import ParallelLayout
    from simulator.scenario import Scenario

MAP_SECONDS = 10.0
"""After so long a search for the map is cut short, unless the scenario says sooner."""
WHERE = "scenario.toml"
LOADED_FIRST = (
    "planner",
    "reports.plotly_figures",
    "reports.report_figures",
    "traincast.forecasts",
)
"""Modules that take the seconds of a first answer: loaded before a question comes."""


class Question(StrEnum):
    """What is asked of a scenario."""

    ESTIMATE = "estimate"
    MAP = "map"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A scenario's text, and the folder that its file names are relative to."""

    question: Question
    text: str
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One number, large."""

    name: str
    value: str
    note: str = ""
    tone: str = ""
    """"good", "bad" or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A figure as plotly takes it, with what stands above and below it."""

    title: str
    caption: str
    plotly: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is known of a scenario; plain values only."""

    problems: tuple[Problem, ...] = ()
    cards: tuple[Card, ...] = ()
    figures: tuple[Drawing, ...] = ()
    notes: tuple[str, ...] = ()
    layout: Mapping[str, Any] = field(default_factory=dict)
    """Of a map, its fastest: what differs from the defaults; dp fills the cluster. Empty where a
    search varies the job or the cluster, of which the map is then another."""


def answer(asked: Asked, go_on: Callable[[], None] = lambda: None) -> Answer:
    """Return the answer to a question; wrong input becomes problems, never an exception.

    `go_on` is called from time to time: what it raises ends a long answer.
    """
    try:
        match asked.question:
            case Question.ESTIMATE:
                return _estimate(asked)
            case Question.MAP:
                return _map(asked, go_on)
    except TraincastError as error:
        return Answer(problems=error.problems)


def _load(asked: Asked) -> Scenario:
    from simulator.files import parse_record
    from simulator.scenario import ScenarioFile, at_folder, resolve_scenario
    from traincast.serve.confinement import check_names
    from traincast.serve.editing import read_text_as_table

    folder, table = Path(asked.folder), read_text_as_table(asked.text, WHERE)
    check_names(table, WHERE, folder)
    file = parse_record(ScenarioFile, table, WHERE)
    return resolve_scenario(at_folder(file, folder), WHERE, folder)


def _estimate(asked: Asked) -> Answer:
    from reports.records import step_record
    from reports.report_figures import memory, step
    from reports.result_files import StepFile
    from reports.words import english
    from simulator.files import parse_record
    from simulator.given_layout import scenario_layout
    from traincast.forecasts import estimate_step

    loaded = _load(asked)
    layout = scenario_layout(loaded)
    record = step_record(loaded, layout, estimate_step(loaded, layout))
    file = parse_record(StepFile, json.loads(json.dumps(record)), WHERE)
    figures = (*memory.memory_parts(file, english), *step.breakdown(file, english))
    return Answer(
        cards=tuple(_cards(record)),
        figures=tuple(map(_drawing, figures)),
        notes=(*record["model"]["notes"], *record["provenance"]["warnings"]),
    )


def _drawing(figure: Figure) -> Drawing:
    from reports.charts import LayoutMap
    from reports.plotly_figures import plotly_figure

    signs = figure.signs if isinstance(figure, LayoutMap) else ()
    caption = " ".join((figure.caption, *(f"{sign}: {meaning}." for sign, meaning in signs)))
    return Drawing(title=figure.title, caption=caption, plotly=plotly_figure(figure))


def _cards(record: Mapping[str, Any]) -> Iterator[Card]:
    from reports.step_view import step_pairs

    fits = record["memory"]["fits"]
    for name, text in step_pairs(record):
        value, _, note = text.partition("  ")
        if name == "peak memory":
            value, note = text.partition(" (")[0], "fits" if fits else "DOES NOT FIT"
        tone = ("good" if fits else "bad") if name == "peak memory" else ""
        yield Card(name=name.partition(" [")[0], value=value, note=_bare(note), tone=tone)


def _bare(note: str) -> str:
    """Return a note without the brackets round all of it."""
    whole = note.startswith("(") and note.find(")") == len(note) - 1
    return note[1:-1] if whole else note


def _map(asked: Asked, go_on: Callable[[], None]) -> Answer:
    from planner import plan
    from reports.records import plan_record
    from reports.report_figures.plan import layout_map
    from reports.result_files import PlanFile
    from reports.words import english
    from simulator.files import parse_record

    loaded = _load(asked)
    limit = min(loaded.file.search.time_limit or MAP_SECONDS, MAP_SECONDS)
    search = loaded.file.search.model_copy(update={"time_limit": limit, "simulate": 1})
    file = loaded.file.model_copy(update={"search": search})
    limited = loaded.model_copy(update={"file": file})
    found = plan(limited, mapped=True, progress=lambda _done, _total: go_on())
    read = parse_record(PlanFile, json.loads(json.dumps(plan_record(loaded, found))), WHERE)
    known = [cell.best for cell in found.cells or () if cell.best is not None]
    varied = bool(read.layouts) and bool(read.layouts[0].varied)
    best = None if varied else min(known, key=lambda each: each.step_time, default=None)
    return Answer(
        figures=tuple(map(_drawing, layout_map(read, english))),
        layout=_written(best.layout) if best else {},
        notes=(_completeness(known, limit),),
    )


def _written(layout: ParallelLayout) -> Mapping[str, Any]:
    return layout.model_dump(mode="json", exclude_defaults=True, exclude={"dp"})


def _completeness(known: Sequence[MapBest], limit: float) -> str:
    if all(each.least_open is None for each in known):
        return "The search is complete."
    return f"The search was cut short after {limit:g} s: a cell may have a faster layout."
