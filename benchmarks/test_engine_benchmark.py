"""A step of 1,024 GPUs no two of which are alike: how many events it takes, and how long.

The event counts are a measure of the work, the same on every machine.
"""

from __future__ import annotations

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from simulator.api import Forecaster
from simulator.engine.jitter import Jitter, draw_jitter
from simulator.engine.replicas import Replicas
from simulator.engine.step import EngineRun, run_step
from simulator.parallel.layout import ParallelLayout
from simulator.schedule.tasks import WorkKind
from simulator.topology.network_file import JitterKind
from tests.fakes import fake_profile, fake_stack, gpt3_175b, tiny_job, tiny_model
from tests.simulator.steps import CAPACITY, Step, step_of

PIPELINES = ParallelLayout(pp=8, dp=128)
PIPELINES_EVENTS = 441_386
SHARDED = ParallelLayout(dp=1024, zero_stage=3)
SHARDED_EVENTS = 531_201
OVERLAP = {"gradient_reduce": True, "parameter_gather": True, "pipeline_send": True}


def pipelines_step() -> Step:
    """175 B parameters over 8 stages, 64 micro-batches a replica, all traffic overlapped."""
    job = tiny_job(global_batch_size=128 * 64, seq_length=2048)
    stack = fake_stack(overlap=OVERLAP)
    cast = Forecaster(gpt3_175b(), job, stack, fake_profile(), PIPELINES.world_size)
    return step_of(PIPELINES, cast)


def sharded_step() -> Step:
    """32 layers, each gathered for itself and its gradients scattered, in 4 micro-batches."""
    job = tiny_job(global_batch_size=1024 * 4)
    model = tiny_model(num_hidden_layers=32)
    stack = fake_stack(overlap=OVERLAP, bucket_parameters=1)
    cast = Forecaster(model, job, stack, fake_profile(), SHARDED.world_size)
    return step_of(SHARDED, cast)


def play_all_different(step: Step, count: int) -> EngineRun:
    """Play a step whose replicas have slowdowns of their own, and kernels that scatter."""
    generator = np.random.default_rng(0)
    jitter = Jitter(kind=JitterKind.LOGNORMAL, deviation=0.02)
    slow = Jitter(kind=JitterKind.GAMMA, deviation=0.05)
    kinds = (WorkKind.GATHER, WorkKind.REDUCE, WorkKind.GATHER_CHUNK, WorkKind.JOIN)
    replicas = Replicas(
        count=count,
        slowdown=draw_jitter(slow, (count, step.graph.pp), 1, generator).tolist(),
        meeting=dict.fromkeys(kinds, count),
        jitter=draw_jitter(jitter, (count, len(step.graph)), 1, generator),
    )
    return run_step(step.graph, step.costs, CAPACITY, replicas=replicas)


def test_1024_different_gpus_in_128_pipelines(benchmark: BenchmarkFixture) -> None:
    step = pipelines_step()
    run = benchmark.pedantic(play_all_different, (step, PIPELINES.dp), rounds=1)
    assert run.events == PIPELINES_EVENTS


def test_1024_different_gpus_that_share_one_model(benchmark: BenchmarkFixture) -> None:
    step = sharded_step()
    run = benchmark.pedantic(play_all_different, (step, SHARDED.dp), rounds=1)
    assert run.events == SHARDED_EVENTS
