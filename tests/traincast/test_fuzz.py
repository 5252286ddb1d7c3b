"""Whatever users hand in: exit code 0, 1 or 2, a message that names the file, never a traceback."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.traincast.bad_files import (
    CONFIG,
    HARMLESS,
    HUGE,
    MODEL,
    ROW,
    SCENARIO,
    SPOILED,
    Document,
    csv_text,
    json_text,
    paths,
    profile_document,
    stack_document,
    toml_text,
    with_value,
)
from tests.traincast.command_line import Outcome, run


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of file, a good one of it, and the verbs that read it."""

    name: str
    document: Document
    text: Callable[[Document], str]
    verbs: tuple[tuple[str, ...], ...]
    """Arguments; FILE stands for the file."""
    place: str = ""
    """Key of a scenario that can name such a file."""


FILE, OUT = "FILE", "out.html"
OUT_DIR = ("--out", OUT)
MEGATRON = ("--tool", "megatron-lm", "--cluster", "dgx-h100", *OUT_DIR)
DEEPSPEED = ("--tool", "deepspeed", "--cluster", "dgx-h100", *OUT_DIR)
KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            name="scenario.toml",
            document=SCENARIO,
            text=toml_text,
            verbs=(("simulate", FILE, "--json", "-"), ("plan", FILE, "--json", "-")),
        ),
        Kind(
            name="model.toml",
            document=MODEL,
            text=toml_text,
            verbs=(("models", FILE, "--json"),),
            place="model",
        ),
        Kind(
            name="config.json",
            document=CONFIG,
            text=json_text,
            verbs=(("models", FILE, "--json"),),
            place="model",
        ),
        Kind(
            name="profile.toml",
            document=profile_document(),
            text=toml_text,
            verbs=(("profiles", FILE, "--json"),),
            place="cluster.profile",
        ),
        Kind(
            name="stack.toml",
            document=stack_document(),
            text=toml_text,
            verbs=(("stacks", FILE, "--json"),),
            place="job.stack",
        ),
        Kind(
            name="rows.csv",
            document=ROW,
            text=csv_text,
            verbs=(("validate", FILE, "--json", "-"),),
        ),
    )
}
WRONG: tuple[Any, ...] = (
    0,
    -1,
    3,
    7,
    10**6,
    HUGE,
    -HUGE,
    1e308,
    1e-320,
    0.5,
    math.nan,
    math.inf,
    -math.inf,
    True,
    "",
    " ",
    "1",
    "nan",
    "inf GB/s",
    "-1 GB/s",
    "80",
    "80 GB",
    "450 GB/s",
    "1e999 s",
    "bf16",
    "\u202e\x1b[31m",
    "x" * 300,
    "../../missing/missing.toml",
    "missing.toml",
    [],
    [1],
    [0, -1],
    ["a"],
    {},
    {"a": 1},
    None,
)
_NUMBERS = itertools.count()


def check(outcome: Outcome, file: Path) -> None:
    """Assert what holds for every outcome of a verb that writes JSON to standard output.

    A message names the file, or one beside it that it names.
    """
    assert outcome.code in (0, 1, 2)
    assert "Traceback" not in outcome.err
    if outcome.code != 0:
        assert str(file.parent) in outcome.err
    if outcome.out:
        assert outcome.record is not None


def read_by_every_verb(kind: Kind, file: Path) -> None:
    """Run all verbs that read a file of this kind, and those of a scenario that names it."""
    for verb in kind.verbs:
        check(run(*(str(file) if word == FILE else word for word in verb)), file)
    if kind.place:
        scenario = file.with_name("uses.toml")
        scenario.write_text(toml_text(with_value(SCENARIO, kind.place, file.name)))
        for planned in ("simulate", "plan"):
            check(run(planned, scenario, "--json", "-"), scenario)


@pytest.fixture(name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp(f"fuzz{next(_NUMBERS)}")


@pytest.mark.parametrize("spoil", SPOILED)
@pytest.mark.parametrize("kind", KINDS)
def test_a_spoiled_file_is_refused_by_name(kind: str, spoil: str, tmp_path: Path) -> None:
    file = tmp_path / kind
    SPOILED[spoil](file, KINDS[kind].text(KINDS[kind].document))
    read_by_every_verb(KINDS[kind], file)


@pytest.mark.parametrize("kind", KINDS)
def test_every_sample_is_good_before_it_is_spoiled(kind: str, tmp_path: Path) -> None:
    file = tmp_path / kind
    file.write_text(KINDS[kind].text(KINDS[kind].document))
    codes = [
        run(*(str(file) if word == FILE else word for word in verb)).code
        for verb in KINDS[kind].verbs
    ]
    assert codes == [0] * len(codes)


@pytest.mark.parametrize("way", HARMLESS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_good_file_may_be_written_in_an_unusual_way(kind: str, way: str, tmp_path: Path) -> None:
    file = tmp_path / kind
    HARMLESS[way](file, KINDS[kind].text(KINDS[kind].document))
    verb = KINDS[kind].verbs[0]
    assert run(*(str(file) if word == FILE else word for word in verb)).code == 0


OTHER_VERBS: dict[str, tuple[str, Callable[[Document], str], tuple[str, ...]]] = {
    "explain": ("one.toml", toml_text, ("explain", FILE, "--quiet", "--json", "-")),
    "goodput": ("one.toml", toml_text, ("goodput", FILE, "--quiet", "--json", "-")),
    "compare": ("one.toml", toml_text, ("compare", FILE, FILE, "--quiet", "--json", "-")),
    "sweep": ("one.toml", toml_text, ("sweep", FILE, "--quiet", "--json", "-")),
    "report": ("one.json", json_text, ("report", FILE, "--out", OUT)),
    "export": ("one.toml", toml_text, ("launch", "export", FILE, "--tool", "torchtitan", *OUT_DIR)),
    "import script": ("one.sh", toml_text, ("launch", "import", FILE, *MEGATRON)),
    "import json": ("one.json", json_text, ("launch", "import", FILE, *DEEPSPEED)),
    "place": ("one.toml", toml_text, ("place", FILE, "--quiet", "--json", "-")),
    "network": ("one.toml", toml_text, ("topology", "check", FILE)),
    "import network": ("one.conf", toml_text, ("topology", "import", FILE, *OUT_DIR)),
    "measurements": ("one.log", toml_text, ("calibrate", "import", FILE, "--quiet", *OUT_DIR)),
    "fit": ("measured", toml_text, ("calibrate", "fit", FILE, "--quiet", *OUT_DIR)),
    "calibration": ("measured", toml_text, ("calibrate", "report", FILE, "--quiet", *OUT_DIR)),
    "check": ("measured", toml_text, ("calibrate", "check", FILE, "--profile", "dgx-h100")),
    "replay": ("traces", toml_text, ("replay", FILE, "--profile", "dgx-h100", "--quiet")),
    "trace": ("one.json", json_text, ("trace", "compare", FILE, FILE)),
}
"""Verb -> the file that it reads, and its arguments."""


@pytest.mark.parametrize(
    "spoil", ["missing", "directory", "fifo", "binary", "json list", "deep objects"]
)
def test_every_verb_refuses_a_spoiled_file_by_name_and_writes_nothing(
    spoil: str, tmp_path: Path
) -> None:
    for verb, (name, text, arguments) in OTHER_VERBS.items():
        folder = tmp_path / verb
        folder.mkdir()
        file = folder / name
        SPOILED[spoil](file, text({"nothing": "of this kind"}))
        before = sorted(folder.iterdir())
        words = {FILE: str(file), OUT: str(folder / OUT)}
        outcome = run(*(words.get(word, word) for word in arguments))
        assert (verb, outcome.code, outcome.out) == (verb, 2, "")
        assert str(folder) in outcome.err
        assert "Traceback" not in outcome.err
        assert sorted(folder.iterdir()) == before


LAYOUTS: dict[str, Document] = {
    "heads do not divide by tp": {"layout.tp": 5, "cluster.nodes": 10},
    "layers do not divide by pp": {"layout.pp": 5, "cluster.nodes": 10},
    "more stages than layers": {"layout.pp": 64, "cluster.nodes": 128},
    "fewer micro-batches than stages": {"layout.pp": 12, "cluster.nodes": 24},
    "batch does not divide": {"job.global_batch_size": 5},
    "batch below dp": {"job.global_batch_size": 1},
    "world size differs": {"layout.dp": 3},
    "no GPUs": {"cluster.nodes": 0},
    "a million nodes": {"cluster.nodes": 10**6},
    "interleaved without chunks": {"layout.schedule": "interleaved"},
    "ZeRO that the stack lacks": {"layout.zero_stage": 3},
    "shards that do not divide": {"layout.shard_size": 7, "layout.zero_stage": 1},
    "odd sequence with cp": {"layout.cp": 2, "layout.dp": None, "job.seq_length": 255},
    "long sequence": {"job.seq_length": 10**7},
    "experts": {"layout.ep": 2},
    "largest batch": {"job.global_batch_size": 10**7},
    "negative layers of a stage": {"layout.layers_per_stage": [-1]},
    "search of nothing": {"search.tp": []},
    "search of zero": {"search.tp": [0]},
    "search of much": {"search.tp": list(range(1, 2000))},
    "precision without constants": {"job.precision": "int8"},
    "fp4": {"job.precision": "fp4"},
    "one node without NIC": {"cluster.profile": "local-cpu"},
    "no layout": {"layout": None},
    "all tokens": {"job.tokens": HUGE},
    "sync without local SGD": {"layout.sync_every": 5},
    "server with ZeRO": {"layout.data_parallel": "parameter-server", "layout.zero_stage": 1},
}


@pytest.mark.parametrize("verb", ["simulate", "plan"])
@pytest.mark.parametrize("case", LAYOUTS)
def test_a_layout_that_cannot_be_is_refused(case: str, verb: str, tmp_path: Path) -> None:
    document = SCENARIO
    for path, value in LAYOUTS[case].items():
        document = with_value(document, path, value)
    file = tmp_path / "scenario.toml"
    file.write_text(toml_text(document))
    check(run(verb, file, "--json", "-"), file)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_in_any_key_is_read_or_refused(
    kind: str, folder: Path, data: st.DataObject
) -> None:
    chosen = KINDS[kind]
    document = chosen.document
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([*paths(chosen.document), "unknown", "cluster.unknown"]))
        document = _try(document, path, data.draw(st.sampled_from(WRONG)))
    file = folder / chosen.name
    file.write_text(chosen.text(document))
    read_by_every_verb(chosen, file)


def _try(document: Document, path: str, value: object) -> Document:
    """Return the document changed, or as it was where the change would not be a document."""
    try:
        changed = with_value(document, path, value)
    except (AttributeError, TypeError):
        return document
    return changed


@given(text=st.text(max_size=200))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_read_or_refused(text: str, folder: Path) -> None:
    for kind in KINDS.values():
        file = folder / kind.name
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
        read_by_every_verb(kind, file)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["plan"],
        ["plan", "a", "b"],
        ["plan", "--top", "0", "x.toml"],
        ["plan", "--top", "many", "x.toml"],
        ["simulate", "--unknown", "x.toml"],
        ["simulate", ""],
        ["simulate", "\0"],
        ["simulate", "x" * 5000],
        ["profiles", "\udcff"],
        ["models", "lama3-8b"],
        ["stacks", "megatron"],
        ["validate", "rows.csv", "--profile", "none"],
        ["simulate", "x.toml", "--json", "-", "--trace", "-"],
        ["simulate", "x.toml", "--json", "\0"],
        ["simulate", "x.toml", "--json", "x" * 5000],
    ],
)
def test_wrong_usage_ends_with_2_and_says_why(arguments: list[str]) -> None:
    outcome = run(*arguments)
    assert (outcome.code, bool(outcome.err), "Traceback" in outcome.err) == (2, True, False)
