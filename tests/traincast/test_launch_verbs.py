"""`traincast launch`: from a scenario to files and back, and from example files to a forecast."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from planner.launch import Tool
from tests.traincast.command_line import run
from tests.traincast.test_examples import EXAMPLES, example

FILES = EXAMPLES / "launch"
DENSE = example("llama3-70b-64-h100")


def step_time(scenario: Path) -> float:
    record = run("simulate", scenario, "--json", "-").record
    seconds: float = record["step"]["step_time_s"]
    return seconds


def test_help_names_every_framework() -> None:
    for verb in ("export", "import"):
        text = " ".join(run("launch", verb, "--help").out.replace("│", " ").split())
        assert [tool for tool in Tool if tool not in text] == []


def test_a_script_that_was_written_is_forecast_as_its_scenario(tmp_path: Path) -> None:
    outcome = run("launch", "export", DENSE, "--tool", "megatron-lm", "--out", tmp_path / "run")
    assert (outcome.code, outcome.out) == (0, "")
    assert "fill in: DATA_PATH" in outcome.err
    script, back = tmp_path / "run" / "train.sh", tmp_path / "back.toml"
    outcome = run("launch", "import", script, "--cluster", "dgx-h100", "--out", back)
    assert outcome.code == 0
    assert step_time(back) == step_time(DENSE)


def test_a_written_script_stops_until_it_is_filled_in(tmp_path: Path) -> None:
    run("launch", "export", DENSE, "--tool", "megatron-bridge", "--out", tmp_path)
    command = ["bash", str(tmp_path / "train.sh")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, "set DATA_PATH in" in done.stderr) == (2, True)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in pairwise("abcdefghi")
)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("config.yaml", BOMB, "is not valid YAML: more than 100,000 values"),
        ("config.yaml", "a: &a [*a]", "is not valid YAML: more than"),
        ("config.yaml", "a: &a {b: *a}", "is not valid YAML: more than"),
        ("ds.json", '{"zero_optimization": {}, "a": 1, "a": 2}', "the key 'a' stands twice"),
        ("train.sh", "A=(x)\n" + 'A+=("${A[@]}")\n' * 40, "is no launch script"),
    ],
)
def test_a_file_that_is_a_trap_is_refused(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    tool = {"config.yaml": "nanotron", "ds.json": "deepspeed"}.get(name, "megatron-lm")
    options = ["--tool", tool, "--cluster", "dgx-h100", "--out", tmp_path / "out.toml"]
    outcome = run("launch", "import", tmp_path / name, *options)
    assert (outcome.code, said in outcome.err, (tmp_path / "out.toml").exists()) == (2, True, False)


def test_nothing_is_written_where_one_of_the_files_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "out.toml").mkdir()
    (tmp_path / "run" / "train.sh").mkdir(parents=True)
    script = FILES / "megatron-gpt-1.3b.sh"
    options = ["--cluster", "dgx-h100", "--out", tmp_path / "out.toml"]
    read = run("launch", "import", script, *options)
    wrote = run("launch", "export", DENSE, "--tool", "deepspeed", "--out", tmp_path / "run")
    assert (read.code, wrote.code) == (2, 2)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_file_beside_the_scenario_overwrites_no_input(tmp_path: Path) -> None:
    script = tmp_path / "out-model.toml"
    script.write_text((FILES / "megatron-gpt-1.3b.sh").read_text())
    options = ["--tool", "megatron-lm", "--cluster", "dgx-h100", "--out", tmp_path / "out.toml"]
    outcome = run("launch", "import", script, *options)
    assert (outcome.code, "would overwrite an input" in outcome.err) == (2, True)


@pytest.mark.parametrize(
    ("file", "options", "parts"),
    [
        ("megatron-gpt-1.3b.sh", [], ["megatron-lm", "next: traincast simulate"]),
        ("torchtitan-llama3-8b.toml", ["--nodes", "2"], ["torchtitan"]),
        (
            "deepspeed-zero3.json",
            ["--nodes", "2", "--model", "llama3.1-8b", "--seq-length", "4096"],
            ["deepspeed", "gradient checkpointing is taken as off"],
        ),
    ],
)
def test_an_example_is_forecast(
    file: str, options: list[str], parts: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "scenario.toml"
    command = ("launch", "import", FILES / file, "--cluster", "dgx-h100", *options)
    outcome = run(*command, "--out", out)
    assert (outcome.code, outcome.err) == (0, "")
    assert all(part in outcome.out for part in parts)
    assert step_time(out) > 0


def test_the_layout_of_a_plan_is_launched(tmp_path: Path) -> None:
    layout = {"tp": 8, "pp": 1, "dp": 8, "micro_batch_size": 1, "schedule": "1f1b"}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"layouts": [{"rank": 1, "layout": layout}]}))
    command = ("launch", "export", DENSE, "--tool", "megatron-lm", "--plan", plan)
    assert run(*command, "--out", tmp_path / "run").code == 0
    assert "--tensor-model-parallel-size 8" in (tmp_path / "run" / "train.sh").read_text()
    outcome = run(*command, "--rank", 2)
    assert (outcome.code, "--rank: has 1 layouts" in outcome.err) == (2, True)


def test_a_job_script_has_the_nodes_of_the_run(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    text = 'partition = "gpu"\nnodes = {}\ngpus_per_node = 8\ntime = "1:00:00"\ngpus = "gres"\n'
    site.write_text(text.format(8))
    command = ("launch", "export", DENSE, "--tool", "megatron-lm", "--slurm", site)
    assert run(*command, "--out", tmp_path / "run").code == 0
    script = (tmp_path / "run" / "job.sbatch").read_text()
    for part in ("--nodes=8", "--ntasks-per-node=1", "--gres=gpu:8", "bash train.sh"):
        assert part in script
    site.write_text(text.format(4))
    outcome = run(*command, "--out", tmp_path / "other")
    assert (outcome.code, "nodes = 8" in outcome.err) == (2, True)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", example("lan-local-sgd"), "--tool", "megatron-lm"], "layout.data_parallel"),
        (["export", DENSE, "--tool", "torchtitan"], "layout.zero_stage = 3"),
        (["import", FILES / "megatron-gpt-1.3b.sh"], "--cluster PROFILE"),
        (["import", DENSE, "--cluster", "dgx-h100"], "--tool megatron-lm|"),
        (["import", FILES / "torchtitan-llama3-8b.toml", "--set", "x"], "must be NAME=VALUE"),
        (["export", DENSE, "--tool", "megatron"], "did you mean"),
        (["import", "nowhere.sh", "--cluster", "dgx-h100"], "no such file"),
    ],
)
def test_what_cannot_be_done_is_said_with_its_fix(
    arguments: list[object], message: str, tmp_path: Path
) -> None:
    outcome = run("launch", *arguments, "--out", tmp_path / "out.toml")
    assert (outcome.code, message in outcome.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_scenario_that_needs_a_file_beside_it_is_not_streamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("launch", "export", DENSE, "--tool", "megatron-lm", "--out", tmp_path)
    script = tmp_path / "train.sh"
    text = script.read_text("utf-8").replace("--ffn-hidden-size 28672", "--ffn-hidden-size 28160")
    script.write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    outcome = run("launch", "import", script, "--cluster", "dgx-h100", "--out", "-")
    assert (outcome.code, outcome.out, sorted(tmp_path.iterdir())) == (2, "", before)
    assert "imported-model.toml" in outcome.err
