"""How long whole plans take; the counts that decide it are asserted in tests/planner."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from planner import Plan, plan
from simulator.scenario import Scenario, SearchFile, load_scenario
from simulator.workload.job import TrainingJob
from tests.planner.scenarios import gpt3_175b, llama3_405b, scenario

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def gpt3_on_1024() -> Scenario:
    """Return GPT-3 175B on 1,024 accelerators, default search."""
    job = TrainingJob(global_batch_size=1536, seq_length=2048)
    return scenario(gpt3_175b(), nodes=128, job=job)


def llama3_on_16384() -> Scenario:
    """Return Llama 3.1 405B on 16,384 accelerators, default search."""
    job = TrainingJob(global_batch_size=2048, seq_length=8192)
    return scenario(llama3_405b(), nodes=2048, job=job, stack="torchtitan")


def mixtral_on_128() -> Scenario:
    """Return Mixtral 8x22B on 128 H100, with the search of the example."""
    return load_scenario(EXAMPLES / "mixtral-8x22b-plan.toml")


def deepseek_on_2048() -> Scenario:
    """Return DeepSeek-V3 on 2,048 H100, default search: a quarter of a million layouts."""
    given = load_scenario(EXAMPLES / "deepseek-v3-2048-h100.toml")
    file = given.file.model_copy(update={"search": SearchFile()})
    return given.model_copy(update={"file": file})


@pytest.mark.parametrize(
    "given",
    [gpt3_on_1024(), llama3_on_16384(), mixtral_on_128(), deepseek_on_2048()],
    ids=["gpt3-1024", "llama3-16384", "mixtral-128", "deepseek-2048"],
)
def test_plan(benchmark: BenchmarkFixture, given: Scenario) -> None:
    answer: Plan = benchmark(plan, given)
    assert answer.found
