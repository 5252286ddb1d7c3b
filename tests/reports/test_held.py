"""Sentences that results hold are Chinese on a Chinese page: every template of the code, and pages.

A sentence is found in two ways. In the code: what `MAKERS` write must be in the catalogue, and what
is in the catalogue must still be written somewhere. On pages: those of shipped examples hold no
English sentence but in names, paths and quoted sources.
"""

# ruff: noqa: RUF001 -- Chinese punctuation
from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from reports.page.document import Document, document_of
from reports.records import plan_record, step_record
from reports.result_files import ResultFile, ResultKind, load_results
from reports.result_files.loading import MODELS
from reports.words import Language, catalogue_of, fields_of, held_sentences, words_in
from simulator.files import parse_record, read_toml
from simulator.given_layout import scenario_layout
from simulator.parallel.reasons import Reason
from simulator.scenario import load_scenario
from tests.reports.result_files.made import MADE, made
from traincast import forecasts

_ROOT = Path(__file__).parents[2]
_EXAMPLES = _ROOT / "examples"
_FILE = read_toml(_ROOT / "reports/catalogues/zh-held.toml")
_STACKS = sorted(
    path
    for folder in ("simulator/workload/stacks", "examples/stacks")
    for path in (_ROOT / folder).glob("*.toml")
)
_HELD: dict[str, str] = _FILE["held"]
_CHINESE = words_in(Language.CHINESE)
MAKERS: Mapping[str, tuple[str, ...]] = {
    "planner/answer.py": ("_search_notes", "_assumptions", "_spreading"),
    "planner/explain.py": ("bottleneck", "reason_words", "runner_up_words", "beyond_words"),
    "planner/goodput/answer.py": ("_warnings", "_assumptions"),
    "planner/goodput/checkpoint.py": ("checkpoint_notes", "keep_notes"),
    "planner/goodput/data.py": ("data_notes",),
    "planner/goodput/elastic.py": ("elastic_notes",),
    "planner/sweep/comparison.py": ("_notes",),
    "planner/sweep/forecast.py": ("_none_fits", "_too_large"),
    "planner/unmatched.py": ("_why",),
    "planner/what_if.py": ("_scale_notes", "_same", "_best"),
    "reports/calibration_errors.py": ("errors_section", "memory_section"),
    "reports/calibration_facts.py": ("rates_section", "rejected_section"),
    "reports/calibration_health.py": ("stragglers_section",),
    "reports/trace_comparison.py": ("_cautions",),
    "reports/trace_sentences.py": ("sentences", "_verdict", "_launches", "_overlap", "_more"),
    "reports/records.py": ("_replica_notes", "mfu_convention"),
    "simulator/conditions.py": ("estimate_notes", "network_notes"),
    "simulator/cost/host_notes.py": ("host_warnings",),
    "simulator/cost/provenance.py": ("provenance_of", "_narrow", "_experts", "utilisation_notes"),
    "simulator/diagnosis.py": ("_without", "_as_fast", "_cables"),
    "simulator/schedule/memory.py": ("_in_flight",),
    "simulator/storage.py": ("storage_notes",),
}
"""Functions whose sentences stand in results; their other texts are names of files and keys."""
_ENGLISH = re.compile(r"(?:(?<=\s)|^)[a-z][a-z'-]+(?: [a-z][a-z'-]+){3,}")
"""Four lower-case words in a row: names of accelerators and models have capitals or digits."""
_PLANNED = (ResultKind.PLAN, ResultKind.EXPLAIN)
"""Kinds whose sentences are those of the shipped plan."""
_QUOTED = ("来源", "source")
"""Columns of sources, which profiles quote."""


@cache
def texts_of(path: str) -> Mapping[str, tuple[str, ...]]:
    """Return the texts that each function of a file writes; fields of f-strings are {}."""
    tree = ast.parse((_ROOT / path).read_text("utf-8"))
    return {getattr(node, "name", ""): tuple(_texts(node)) for node in tree.body}


def _texts(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a tree without docstrings; parts of an f-string are not strings."""
    match tree:
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Constant(value=str() as text):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else "{}" for p in parts)
            for part in parts:
                yield from _texts(part) if isinstance(part, ast.FormattedValue) else ()
        case _:
            for child in ast.iter_child_nodes(tree):
                yield from _texts(child)


def _bare(template: str) -> str:
    """Return a template with nameless fields."""
    return "".join(
        text + "{}" * (name is not None) for text, name, *_ in Formatter().parse(template)
    )


def _is_sentence(text: str) -> bool:
    """Return whether a text of the code is more than names of keys and files."""
    return " " in text.strip() and len(re.findall(r"\b[a-z]{2,}\b", text)) > 1


_KNOWN = " | ".join(map(_bare, (*_HELD, *catalogue_of(Language.CHINESE))))


@pytest.mark.parametrize("path", MAKERS)
def test_what_results_say_is_in_the_catalogue(path: str) -> None:
    said = texts_of(path)
    sentences = [text for name in MAKERS[path] for text in said[name] if _is_sentence(text)]
    assert [text for text in sentences if text.strip("{} ;,.") not in _KNOWN] == []


def test_every_reason_of_a_refusal_is_chinese() -> None:
    assert [reason for reason in Reason if _CHINESE.held(reason) == reason] == []


def test_what_is_in_the_catalogue_is_still_said_somewhere() -> None:
    names = ("simulator", "planner", "calibrate", "reports", "traincast")
    packages = (_ROOT / name for name in names)
    code = (path for package in packages for path in package.rglob("*.py"))
    said = [text for path in code for text in _texts(ast.parse(path.read_text("utf-8")))]
    data = (*_STACKS, *_ROOT.glob("hardware_profiles/*/*.toml"))
    said += [path.read_text("utf-8") for path in data]
    corpus = "\n".join(said)
    gone = {
        template
        for template in _HELD
        for part in re.split(r"\{\}|[,;:]| with ", _bare(template))
        if _is_sentence(part) and part.strip(' ()"') not in corpus
    }
    assert sorted(gone) == []


@pytest.mark.parametrize("path", _STACKS, ids=lambda path: path.stem)
def test_what_a_shipped_stack_says_of_its_interval_is_chinese(path: Path) -> None:
    source = read_toml(path).get("fit", {}).get("spread_source", "")
    assert not _ENGLISH.search(_CHINESE.held(f"{path.stem}: {source}"))


def test_every_translation_keeps_the_fields_of_its_template() -> None:
    pairs = {**_HELD, **_FILE["frames"]}.items()
    assert [key for key, text in pairs if fields_of(text) != fields_of(key)] == []


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("matrix products: 52% of the step of stage 3", "矩阵乘：占阶段 3 步时的 52%"),
        (
            "tp2 pp1 dp8 takes 0.12 s more a step: attention +0.0421 s, pipeline bubble -1 s; the "
            "difference is within the forecast's interval",
            "tp2 pp1 dp8 每步多 0.12 s：注意力 +0.0421 s，流水线气泡 -1 s；差异在预测区间之内",
        ),
        (
            "layout.tp: heads must divide by tp (found 40 heads, tp 3) fix: tp of 1, 2",
            "layout.tp：头数必须能被 tp 整除（现为 40 个头，tp 3）；改法：tp 取 1, 2",
        ),
        ("an own note about {braces}, of a user", "an own note about {braces}, of a user"),
    ],
)
def test_a_sentence_is_told_with_all_that_stands_in_it(english: str, chinese: str) -> None:
    assert held_sentences(Language.CHINESE).told(english) == chinese


def english_in(document: Document) -> set[str]:
    """Return the texts of a page that hold an English sentence."""
    parts = document.parts
    texts = [s for digest in document.summary for st in digest.statements for s in st.sentences]
    for section in (section for part in parts for section in part.sections):
        texts += [section.title, *section.text, *section.titles]
        texts += [c for col in section.columns if col.title not in _QUOTED for c in col.cells]
    texts += [text for part in parts for f in part.figures for text in (f.title, f.caption)]
    return {text for text in texts if _ENGLISH.search(text)}


def _chinese_page(kind: ResultKind, record: Mapping[str, object]) -> Document:
    result: Any = parse_record(MODELS[kind], json.loads(json.dumps(record)), "result.json")
    return document_of([ResultFile(path=Path("result.json"), result=result)], Language.CHINESE)


def _with_layouts() -> list[str]:
    return [
        path.stem for path in sorted(_EXAMPLES.glob("*.toml")) if "[layout]" in path.read_text()
    ]


@pytest.mark.parametrize("example", _with_layouts())
def test_the_page_of_a_shipped_step_is_chinese(example: str) -> None:
    loaded = load_scenario(_EXAMPLES / f"{example}.toml")
    layout = scenario_layout(loaded)
    record = step_record(loaded, layout, forecasts.estimate_step(loaded, layout))
    assert english_in(_chinese_page(ResultKind.STEP, record)) == set()


def test_the_page_of_a_shipped_plan_is_chinese() -> None:
    loaded = load_scenario(_EXAMPLES / "gpt-18b-gpipe.toml")
    found = forecasts.plan(loaded, mapped=True)
    assert found.reason
    record = plan_record(loaded, found)
    assert english_in(_chinese_page(ResultKind.PLAN, record)) == set()


def test_every_shipped_change_of_a_machine_or_job_is_chinese() -> None:
    shipped = read_toml(_ROOT / "hardware_profiles/what_if/changes.toml")
    names = [row["name"] for rows in shipped.values() if isinstance(rows, list) for row in rows]
    assert names
    assert [name for name in names if _CHINESE.held(name) == name] == []


@pytest.mark.parametrize("kind", [kind for kind in MADE if kind not in _PLANNED])
def test_the_page_of_every_kind_of_result_is_chinese(kind: ResultKind, tmp_path: Path) -> None:
    page = document_of(load_results([made(kind, tmp_path)]), Language.CHINESE)
    assert english_in(page) == set()
