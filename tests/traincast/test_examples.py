"""Every shipped example simulates, the small ones are planned, and all say the same in JSON."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.traincast.command_line import run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCENARIOS = sorted(path.stem for path in EXAMPLES.glob("*.toml"))
SMALL = ["lan-ddp", "llama3.1-8b-dgx-h100"]
STABLE = {
    "gpt3-175b-1024-a100": (
        "GPT-3 175B on 1024 A100\n"
        "tp 8, pp 8, dp 16, micro-batch 1, schedule 1f1b, recompute full, 96 micro-batches; event "
        "simulation\n"
    ),
    "llama3.1-8b-dgx-h100": (
        "Llama 3.1 8B on one DGX H100\n"
        "tp 2, pp 1, dp 4, micro-batch 1, ZeRO-1, recompute selective, sequence parallel, 32 "
        "micro-batches; event simulation\n"
    ),
    "lan-local-sgd": (
        "GPT-2 medium on four workstations, local SGD\n"
        "tp 1, pp 1, dp 4, micro-batch 4, local-sgd, recompute full, 4 micro-batches; event "
        "simulation\n"
    ),
}


def example(name: str) -> Path:
    """Return the path of an example."""
    return EXAMPLES / f"{name}.toml"


def numbers(record: Any) -> list[float]:
    """Return all numbers in a record, in order."""
    match record:
        case dict():
            return list(itertools.chain.from_iterable(map(numbers, record.values())))
        case list():
            return list(itertools.chain.from_iterable(map(numbers, record)))
        case bool() | None | str():
            return []
        case _:
            return [record]


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_example_simulates_and_fits(name: str) -> None:
    outcome = run("simulate", example(name), "--json", "-")
    assert (outcome.code, outcome.err, outcome.record["memory"]["fits"]) == (0, "", True)


@pytest.mark.parametrize("name", SMALL)
def test_a_small_example_is_planned(name: str) -> None:
    outcome = run("plan", example(name), "--top", 2, "--json", "-")
    ranks = [entry["rank"] for entry in outcome.record["layouts"]]
    assert (outcome.code, outcome.err, ranks) == (0, "", [1, 2])


@pytest.mark.parametrize("name", STABLE)
def test_the_head_of_a_report_does_not_change(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run("simulate", example(name)).out.startswith(STABLE[name])


def test_the_planned_best_is_what_simulating_it_gives() -> None:
    import traincast

    scenario = traincast.load_scenario(example("lan-ddp"))
    best = traincast.plan(scenario).layouts[0]
    assert traincast.simulate_step(scenario, best.layout).step_time == best.step_time


def test_a_json_record_adds_up() -> None:
    record = run("simulate", example("gpt-18b-gpipe"), "--json", "-").record
    total = sum(record["breakdown"]["seconds"].values())
    assert total == pytest.approx(record["step"]["step_time_s"])
