"""Input that was found to break the command line, each kind once."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.traincast.bad_files import (
    BAD_SCHEDULES,
    CONTRADICTIONS,
    MODEL,
    ROW,
    SCENARIO,
    SEARCHES,
    Document,
    csv_text,
    profile_document,
    toml_text,
    with_value,
)
from tests.traincast.command_line import Outcome, run

FREE = with_value(SCENARIO, "layout", None)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(document: dict[str, Any], name: str = "scenario.toml", **changes: object) -> str:
    for key, value in changes.items():
        document = with_value(document, key.replace("__", "."), value)
    Path(name).write_text(toml_text(document))
    return name


def refused(outcome: Outcome, *words: str) -> None:
    assert outcome.code == 2, outcome
    assert all(word in outcome.err for word in words), outcome.err


@pytest.mark.parametrize("name", ["own.toml", "./own.toml"])
def test_a_wrong_key_of_a_named_file_is_named_with_that_file(name: str) -> None:
    written(profile_document(), "own.toml", accelerator__memory="x", node__accelerators=0)
    outcome = run("simulate", written(SCENARIO, cluster__profile=name))
    refused(outcome, "own.toml: accelerator.memory: ", "own.toml: node.accelerators: ")


def test_a_missing_named_file_is_named_with_the_key_that_names_it() -> None:
    outcome = run("simulate", written(SCENARIO, model="none.toml"))
    refused(outcome, "scenario.toml: model: ", "'none.toml'")


def test_shipped_constants_are_not_a_way_out_of_their_folder() -> None:
    path = "../hardware_profiles/dgx-h100.toml"
    refused(run("profiles", written(profile_document(), "own.toml", constants=path)), "own.toml: ")


def test_free_sizes_stay_within_what_a_layout_may_have() -> None:
    written({**MODEL, "num_hidden_layers": 10_000}, "deep.toml")
    outcome = run("plan", written(FREE, model="deep.toml", search__micro_batch_size=[1]))
    assert outcome.code == 1, outcome.err


def test_a_batch_of_one_accelerator_may_be_the_largest() -> None:
    scenario = written(FREE, job__global_batch_size=5 * 10**6, cluster__nodes=1, search={"top": 1})
    outcome = run("plan", scenario, "--json", "-")
    assert outcome.code in (0, 1), outcome.err


def test_a_search_that_would_not_end_is_refused() -> None:
    sizes = list(range(1, 1025))
    search = {"tp": sizes, "pp": sizes, "cp": sizes}
    refused(run("plan", written(FREE, search=search)), "search: ", "tp of 1024", "fix:")


@pytest.mark.parametrize(
    "key", ["tp", "pp", "cp", "vpp", "zero_stage", "sequence_parallel", "schedule", "recompute"]
)
def test_an_empty_search_list_is_refused_by_name(key: str) -> None:
    refused(run("plan", written(FREE, search={key: []})), f"search.{key}: ", "fix:")


@pytest.mark.parametrize(("document", "keys", "words"), CONTRADICTIONS)
def test_keys_that_contradict_each_other_are_refused(
    document: Document, keys: dict[str, Any], words: list[str]
) -> None:
    changes = {key.replace(".", "__"): value for key, value in keys.items()}
    refused(run("simulate", written(document, **changes)), *words)


@pytest.mark.parametrize(("document", "search", "words"), SEARCHES)
def test_a_search_that_contradicts_itself_is_refused(
    document: Document, search: dict[str, Any], words: list[str]
) -> None:
    refused(run("plan", written(document, layout=None, search=search)), *words)


def test_a_job_that_no_layout_can_run_is_bad_input_and_not_an_empty_plan() -> None:
    job: dict[str, Any] = {
        "job__lora": {"rank": 8},
        "job__freeze": ["mlp"],
        "job__document_length": 512,
    }
    outcome = run("plan", written(FREE, **job))
    refused(outcome, "job.freeze: ", "job.document_length: ")


@pytest.mark.parametrize(("text", "words"), BAD_SCHEDULES)
def test_a_bad_schedule_file_is_refused(text: str, words: list[str]) -> None:
    Path("order.csv").write_text(text, encoding="utf-8")
    layout = {"pp": 2, "dp": 1, "schedule": "csv", "schedule_file": "order.csv"}
    changes: dict[str, Any] = {
        "layout": layout,
        "job__stack": "torchtitan",
        "job__global_batch_size": 1,
    }
    refused(run("simulate", written(SCENARIO, **changes)), "order.csv: ", *words)


@pytest.mark.skipif(
    not Path("/dev/zero").is_char_device(), reason="this machine has no endless file"
)
@pytest.mark.parametrize("file", ["none.csv", ".", "/dev/zero"])
def test_a_schedule_that_is_no_file_is_refused(file: str) -> None:
    layout = {"pp": 2, "dp": 1, "schedule": "csv", "schedule_file": file}
    outcome = run("simulate", written(SCENARIO, layout=layout, job__stack="torchtitan"))
    refused(outcome, "layout.schedule_file: ", "fix: a CSV file")


@pytest.mark.parametrize("verb", ["simulate", "plan"])
@pytest.mark.parametrize(
    ("key", "value", "tokens"),
    [
        ("accelerator.memory_bandwidth", "1e-300 B/s", 10**9),
        ("node.nic.latency", "1e300 s", 10**20),
        ("price.per_accelerator_hour", 1e300, 10**30),
        ("title", "tokens alone", 10**400),
    ],
)
def test_what_overflows_is_refused(verb: str, key: str, value: object, tokens: int) -> None:
    Path("own.toml").write_text(toml_text(with_value(profile_document(), key, value)))
    scenario = written(SCENARIO, cluster__profile="own.toml", job__tokens=tokens)
    refused(run(verb, scenario, "--json", "-"), "scenario.toml: ", "not finite")


def test_what_overflows_in_a_table_is_refused() -> None:
    written(profile_document(), "own.toml", accelerator__memory_bandwidth="1e-300 B/s")
    Path("rows.csv").write_text(csv_text(ROW))
    refused(run("validate", "rows.csv", "--profile", "own.toml"), "rows.csv: ", "not finite")


@pytest.mark.parametrize("text", ["450 mB/s", "1 mb/s"])
def test_thousandths_of_a_byte_are_a_slip(text: str) -> None:
    written(profile_document(), "own.toml", accelerator__memory_bandwidth=text)
    refused(run("profiles", "own.toml"), "is not a unit of bandwidth")


def test_keys_are_shown_without_control_characters() -> None:
    Path("scenario.toml").write_text('"\\u001b[31mred\\nline" = 1\n' + toml_text(SCENARIO))
    outcome = run("simulate", "scenario.toml")
    refused(outcome, "\\x1b[31mred\\nline: unknown key")
    assert "\x1b" not in outcome.err


@pytest.mark.parametrize("key", ["model", "cluster__profile", "job__stack"])
def test_a_very_long_name_is_cut(key: str) -> None:
    outcome = run("simulate", written(SCENARIO, **{key: "x" * 10**5}))
    refused(outcome, "neither")
    assert len(outcome.err) < 3000


def test_a_long_split_is_cut() -> None:
    written({**MODEL, "num_hidden_layers": 10_000}, "deep.toml")
    layout = {"pp": 4096, "dp": 1}
    outcome = run(
        "simulate", written(SCENARIO, model="deep.toml", cluster__nodes=4096, layout=layout)
    )
    refused(outcome, "layers_per_stage = [3, 3, ", "...")
    assert len(outcome.err) < 1000


def test_an_output_may_not_replace_its_input() -> None:
    scenario = written(SCENARIO)
    before = Path(scenario).read_text()
    refused(run("plan", scenario, "--json", f"./{scenario}"), "--json", "the input")
    refused(run("simulate", scenario, "--trace", scenario), "--trace", "the input")
    assert Path(scenario).read_text() == before
    Path("rows.csv").write_text(csv_text(ROW))
    refused(run("validate", "rows.csv", "--json", "rows.csv"), "--json", "the input")


def test_two_outputs_may_not_be_one_file() -> None:
    outcome = run("simulate", written(SCENARIO), "--trace", "out.json", "--json", "./out.json")
    refused(outcome, "would overwrite --trace")
    assert not Path("out.json").exists()


def test_a_link_stays_a_link() -> None:
    Path("link.json").symlink_to("real.json")
    assert run("simulate", written(SCENARIO), "--json", "link.json").code == 0
    assert Path("link.json").is_symlink()
    assert Path("real.json").read_text().startswith("{")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_or_device_is_written_to_and_not_replaced() -> None:
    os.mkfifo("pipe")
    with subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE, text=True) as reader:
        assert run("simulate", written(SCENARIO), "--json", "pipe").code == 0
        read, _ = reader.communicate(timeout=60)
    assert read.startswith("{")
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)


def _shell(command: str) -> subprocess.CompletedProcess[str]:
    program = f'"{sys.executable}" -m traincast {command}'
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    return subprocess.run(
        ["sh", "-c", program], capture_output=True, text=True, check=False, env=environment
    )


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("stacks >&-", 0),
        ("stacks --json >&-", 0),
        ("stacks none 2>&-", 2),
        ("stacks none >&- 2>&-", 2),
    ],
)
def test_closed_streams_change_no_exit_code(command: str, code: int) -> None:
    ran = _shell(command)
    assert (ran.returncode, "Traceback" in ran.stderr) == (code, False), ran.stderr


@pytest.mark.skipif(
    not Path("/dev/full").is_char_device(), reason="this machine has no full device"
)
@pytest.mark.parametrize("command", ["stacks", "stacks --json", "--help"])
def test_a_full_disk_behind_standard_output_is_said(command: str) -> None:
    ran = _shell(f"{command} > /dev/full")
    assert ran.returncode == 2
    assert ran.stderr == "standard output: cannot be written: No space left on device\n"


@pytest.mark.parametrize("word", ["\udcff.toml", "half\ud800", "nothing\0"])
def test_an_argument_that_is_no_text_is_refused_by_its_place(word: str) -> None:
    outcome = run("topology", "import", "edges.csv", "--title", word, "--out", "none/x.toml")
    refused(outcome, "argument 5: must be text in UTF-8", ascii(word), "fix: ")
    assert outcome.err.isascii()


def test_a_device_in_place_of_a_file_is_called_what_it_is() -> None:
    os.mkfifo("pipe")
    refused(run("simulate", "pipe"), "must be a regular file", "(found a pipe)", "fix: ")
    refused(run("simulate", "."), "(found a directory)", "fix: a file in it")
    refused(run("simulate", os.devnull), "(found a device)")


def test_no_columns_are_not_no_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    outcome = run("stacks")
    assert outcome.code == 0
    assert "megatron-core" in outcome.out
