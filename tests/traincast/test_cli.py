"""The command line: where results and messages go, exit codes, and that it starts quickly."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import traincast
from tests.traincast.bad_files import SCENARIO, toml_text, with_value
from tests.traincast.command_line import run
from traincast import cli

HEAVY = {"numpy", "pandas", "scipy", "simpy", "pint", "pydantic", "rich", "matplotlib", "joblib"}
COMMAND = [sys.executable, "-m", "traincast"]


@pytest.fixture(name="scenario")
def _scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text(toml_text(SCENARIO))
    return path


@pytest.mark.parametrize("module", ["traincast", "traincast.cli"])
def test_importing_it_loads_nothing_heavy(module: str) -> None:
    code = f"import {module}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & set(done.stdout.split()) == set()


def test_planning_on_a_profile_loads_no_unit_library_and_no_scipy(scenario: Path) -> None:
    code = (
        "import sys; from planner import plan; from simulator.scenario import load_scenario; "
        f"plan(load_scenario({str(scenario)!r})); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"scipy", "pint"} & set(done.stdout.split()) == set()


def test_help_names_every_verb() -> None:
    outcome = run("--help")
    verbs = ("plan", "simulate", "validate", "profiles", "models", "stacks")
    assert (outcome.code, [v for v in verbs if f"  {v} " not in outcome.out]) == (0, [])


def test_every_public_name_loads() -> None:
    assert [name for name in traincast.__all__ if not hasattr(traincast, name)] == []


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'forecast'"):
        getattr(traincast, "forecast")  # noqa: B009  (a type checker knows that it is missing)


def test_json_on_standard_output_stands_alone(scenario: Path) -> None:
    outcome = run("plan", scenario, "--json", "-")
    assert (outcome.record["world_size"], outcome.err) == (2, "")


def test_a_json_file_comes_beside_the_table(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "step.json"
    outcome = run("simulate", scenario, "--json", out)
    assert ("step time" in outcome.out, json.loads(out.read_text())["layout"]["dp"]) == (True, 2)


def test_csv_has_one_row_a_layout(scenario: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("plan", scenario, "--csv", "-").out)))
    assert [(row["rank"], row["tp"]) for row in rows] == [("1", "1"), ("2", "1")]


def test_top_overrides_the_file(scenario: Path) -> None:
    assert len(run("plan", scenario, "--json", "-", "--top", 1).record["layouts"]) == 1


def test_a_folder_that_is_missing_is_named(scenario: Path, tmp_path: Path) -> None:
    outcome = run("simulate", scenario, "--json", tmp_path / "no" / "step.json")
    assert (outcome.code, str(tmp_path / "no" / "step.json") in outcome.err) == (2, True)


def test_a_layout_that_does_not_fit_is_shown_and_ends_with_1(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    path.write_text(toml_text(with_value(SCENARIO, "model", "llama3.1-8b")))
    outcome = run("simulate", path)
    shown = "DOES NOT FIT" in outcome.out
    assert (outcome.code, shown, "large.toml: layout: must fit" in outcome.err) == (1, True, True)


def test_a_search_in_which_nothing_fits_says_what_comes_closest(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    path.write_text(toml_text(with_value(SCENARIO, "model", "llama3.1-70b")))
    outcome = run("plan", path)
    assert (outcome.code, "Closest" in outcome.out, "large.toml" in outcome.err) == (1, True, True)


def test_all_problems_of_a_file_are_reported_together(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    wrong = with_value(with_value(SCENARIO, "cluster.nodes", 0), "job.seq_len", 5)
    path.write_text(toml_text(wrong))
    err = run("simulate", path).err
    assert ("cluster.nodes:" in err, "did you mean 'seq_length'?" in err) == (True, True)


def test_a_misspelt_model_is_a_problem_of_the_scenario(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(toml_text(with_value(SCENARIO, "model", "llama3-8")))
    err = run("simulate", path).err
    start = f"{path}: model: is neither a shipped model"
    assert (err.startswith(start), "did you mean 'llama3-8b'?" in err) == (True, True)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("job.precision", "int8", "job.precision: lan-workstations has no peak or no constants"),
        ("job.global_batch_size", 10**7, "layout.micro_batch_size: a step of at most"),
        ("cluster.nodes", 10**6, "layout: must use all 1000000 accelerators"),
        ("search.tp", [0], "search.tp.0: "),
        ("job.stack", "megatron", "job.stack: is neither a shipped stack"),
    ],
)
def test_a_refusal_names_the_key(key: str, value: object, says: str, tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(toml_text(with_value(SCENARIO, key, value)))
    assert f"{path}: {says}" in run("simulate", path).err


def test_an_interrupt_ends_with_130(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run", interrupt)
    assert run("simulate", scenario).code == cli.EXIT_INTERRUPTED


def test_a_reader_that_goes_away_is_not_worth_a_message() -> None:
    command = f"{sys.executable} -m traincast models --json | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (len(done.stdout), done.stderr) == (10, "")


def test_an_importable_config_shows_its_parameters(tmp_path: Path) -> None:
    from tests.traincast.bad_files import CONFIG, json_text

    (tmp_path / "config.json").write_text(json_text(CONFIG))
    record = run("models", tmp_path / "config.json", "--json").record
    layer = 256 * (256 + 128 + 128 + 256) + 3 * 256 * 512 + 2 * 256
    assert record["parameters"] == {
        "total": 4 * layer + 2 * 1000 * 256 + 256,
        "layers": 4 * layer,
        "embedding": 1000 * 256,
        "final_norm": 256,
        "head": 1000 * 256,
    }


@pytest.mark.parametrize("verb", ["profiles", "models", "stacks"])
def test_lists_and_pages_agree_on_names(verb: str) -> None:
    names = [entry["name"] for entry in run(verb, "--json").record]
    pages = [run(verb, name, "--json").record["name"] for name in names[:3]]
    assert pages == names[:3]


@pytest.mark.parametrize("arguments", [["profiles", "dgx-h100"], ["models", "gpt2"], ["stacks"]])
def test_pages_are_plain_text_when_piped(arguments: list[str]) -> None:
    outcome = run(*arguments)
    assert (outcome.code, outcome.err, "\x1b" in outcome.out) == (0, "", False)
