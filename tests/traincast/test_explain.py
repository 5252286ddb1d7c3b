"""`traincast explain` and the objectives of `traincast plan`, as typed at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.traincast.command_line import run
from traincast.docs import machine_output

SCENARIO = """
model = "llama3.2-1b"
[cluster]
profile = "dgx-h100"
nodes = 1
[job]
global_batch_size = 8
seq_length = 2048
tokens = 1_000_000_000
stack = "megatron-core"
[search]
tp = [1, 2]
pp = [1]
micro_batch_size = [1]
zero_stage = [1]
recompute = ["none"]
sequence_parallel = [true]
{search}
[uncertainty]
draws = 8
layouts = 2
[[what_if]]
name = "slow links"
change = {{ node.scale_up.bandwidth = "x0.25" }}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Return a scenario of two layouts."""
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO.format(search=""))
    return path


def test_an_explanation_is_printed_and_has_the_keys_that_are_described(
    scenario: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    found = run("explain", scenario, "--layout-key", "tp=2", "--json", out)
    assert (found.code, found.err) == (0, "")
    record = json.loads(out.read_text())
    kind = record["worthwhile"]
    assert (set(record), set(record["what_if"][0]), set(kind)) == (
        set(machine_output.EXPLANATION),
        set(machine_output.WHAT_IF),
        set(machine_output.WORTHWHILE),
    )
    own = record["what_if"][-1]
    assert own["name"] == "slow links"
    assert 0 < own["same_layout"]["speedup"] < 1
    assert {row["name"] for row in kind["thresholds"]} > {"NIC bandwidth", "scale-up domain"}
    parts = ("chosen for", "best in", "What if", "slow links", "What would make tp = 2 worthwhile")
    parts += ("What the step is uncertain by",)
    assert all(text in found.out for text in parts)


def test_a_word_that_is_no_axis_is_refused_with_the_nearest(scenario: Path) -> None:
    found = run("explain", scenario, "--layout-key", "tensor=2,ppp=1")
    assert found.code == 2
    assert (
        "must be an axis of the search and its value, such as tp=16 (found tensor=2)" in found.err
    )
    assert "fix: did you mean 'pp'?" in found.err


def test_a_typo_in_a_change_is_refused_before_the_search(scenario: Path) -> None:
    scenario.write_text(scenario.read_text().replace("scale_up", "scale_upp"))
    found = run("explain", scenario)
    assert found.code == 2
    assert (
        "what_if 'slow links': node.scale_upp.bandwidth: there is no 'scale_upp' here" in found.err
    )


def test_a_limit_that_no_layout_keeps_ends_with_1_and_says_by_how_much(scenario: Path) -> None:
    scenario.write_text(SCENARIO.format(search="max_days = 0.0001"))
    found = run("plan", scenario)
    assert found.code == 1
    assert "above search.max_days = 0.0001" in found.err


def test_a_cost_without_a_price_is_refused_with_where_to_put_one(scenario: Path) -> None:
    scenario.write_text(SCENARIO.format(search='objective = "cost"'))
    found = run("plan", scenario)
    assert found.code == 2
    assert "search.objective: dgx-h100 has no price" in found.err
    assert "fix: run.price = ..." in found.err


def test_a_front_is_printed_and_in_the_json(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(SCENARIO.format(search='pareto = ["memory", "energy"]'))
    out = tmp_path / "out.json"
    found = run("plan", scenario, "--json", out)
    front = json.loads(out.read_text())["pareto"]
    assert set(front) == set(machine_output.PARETO)
    values = [point["values"] for point in front["layouts"]]
    assert values == sorted(values)
    assert "No other is as good in both: memory and energy" in found.out
