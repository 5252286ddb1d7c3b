"""How long a warm estimate and an event run take; the event counts are asserted by the tests."""

from __future__ import annotations

from pytest_benchmark.fixture import BenchmarkFixture

from simulator.api import Forecaster
from simulator.parallel.layout import ParallelLayout
from simulator.workload.model import ModelSpec
from tests.fakes import fake_profile, fake_stack, gpt3_175b, gpt_1t, tiny_job
from tests.simulator.steps import Step, step_of

GPT3 = ParallelLayout(tp=8, pp=8, dp=16)
TRILLION = ParallelLayout(tp=8, pp=64, dp=6)


def forecaster(model: ModelSpec, layout: ParallelLayout, micro_batches: int) -> Forecaster:
    job = tiny_job(global_batch_size=layout.dp * micro_batches, seq_length=2048)
    return Forecaster(model, job, fake_stack(), fake_profile(), layout.world_size)


def gpt3_step() -> Step:
    return step_of(GPT3, forecaster(gpt3_175b(), GPT3, 96))


def trillion_step() -> Step:
    return step_of(TRILLION, forecaster(gpt_1t(), TRILLION, 512))


def test_warm_estimate_of_175b(benchmark: BenchmarkFixture) -> None:
    cast = forecaster(gpt3_175b(), GPT3, 96)
    assert benchmark(cast.step_time, GPT3) > 0


def test_warm_estimate_of_1t_over_64_stages(benchmark: BenchmarkFixture) -> None:
    cast = forecaster(gpt_1t(), TRILLION, 512)
    assert benchmark(cast.step_time, TRILLION) > 0


def test_engine_step_of_175b(benchmark: BenchmarkFixture) -> None:
    assert benchmark(gpt3_step().play).events > 0


def test_engine_step_of_1t_over_64_stages(benchmark: BenchmarkFixture) -> None:
    assert benchmark(trillion_step().play).events > 0
