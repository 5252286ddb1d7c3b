"""A step of 1,024 GPUs no two of which are alike: how many events it takes, and how long.

The event counts are a measure of the work, the same on every machine.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from simulator.api import Forecaster
from simulator.cost.plan import Load
from simulator.cost.priced import WorkCost
from simulator.engine.fabric import Fabric
from simulator.engine.jitter import Jitter, draw_jitter
from simulator.engine.replicas import Replicas
from simulator.engine.step import EngineRun, run_step
from simulator.parallel.layout import ParallelLayout
from simulator.schedule.tasks import WorkKind
from simulator.topology.network_file import JitterKind
from tests.fakes import fake_profile, fake_stack, gpt3_175b, tiny_job, tiny_model
from tests.simulator.steps import CAPACITY, Step, step_of

PIPELINES = ParallelLayout(pp=8, dp=128)
PIPELINES_EVENTS, PIPELINES_PLAYED = 3_651, 904
FULL_LINK_EVENTS = 184_159
_FULL = 0.002
SHARDED = ParallelLayout(dp=1024, zero_stage=3)
OVERLAP = {"gradient_reduce": True, "parameter_gather": True, "pipeline_send": True}


def pipelines_step(micro_batches: int = 64) -> Step:
    """175 B parameters over 8 stages, all traffic overlapped, so many micro-batches a replica."""
    job = tiny_job(global_batch_size=128 * micro_batches, seq_length=2048)
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


def play_all_different(step: Step, count: int, fabric: Fabric | None = None) -> EngineRun:
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
    return run_step(step.graph, step.costs, CAPACITY, fabric=fabric, replicas=replicas)


def test_1024_different_gpus_in_128_pipelines(benchmark: BenchmarkFixture) -> None:
    step = pipelines_step()
    run = benchmark.pedantic(play_all_different, (step, PIPELINES.dp), rounds=1)
    assert (run.events, run.played) == (PIPELINES_EVENTS, PIPELINES_PLAYED)


def test_1024_different_gpus_on_a_link_that_is_full(benchmark: BenchmarkFixture) -> None:
    """All transfers of all replicas and stages cross one link that carries a 500th of them."""
    step = pipelines_step(micro_batches=16)
    costs = over_one_link(step)
    rate = max(phase.rate for cost in costs for plan in cost.plans for phase in plan.phases)
    fabric = Fabric(capacity=(rate * PIPELINES.world_size * _FULL,))
    crossing = replace(step, costs=costs)
    run = benchmark.pedantic(play_all_different, (crossing, PIPELINES.dp, fabric), rounds=1)
    assert run.events == FULL_LINK_EVENTS


def over_one_link(step: Step) -> list[WorkCost]:
    """Return the costs of a step whose collectives and transfers all load one class of links."""
    load = Load(links=(0,), weights=(1.0,))
    return [
        replace(
            cost,
            plans=tuple(
                replace(plan, phases=tuple(replace(phase, over=load) for phase in plan.phases))
                for plan in cost.plans
            ),
        )
        for cost in step.costs
    ]


def test_1024_different_gpus_that_share_one_model(benchmark: BenchmarkFixture) -> None:
    step = sharded_step()
    run = benchmark.pedantic(play_all_different, (step, SHARDED.dp), rounds=1)
    # All collectives are meetings on one stream, which nothing else can lengthen.
    assert (run.events, run.played) == (0, 0)
