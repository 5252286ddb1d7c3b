"""What a plan says in words, on numbers that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.explain import (
    bottleneck,
    extra_seconds,
    run_totals,
    stage_memory_report,
    why_it_lost,
)
from planner.result import PlannedLayout, RunTotals
from simulator.hardware.profile import Price
from simulator.parallel.layout import ParallelLayout
from simulator.results import Breakdown, Category, MemoryUse
from simulator.units import GIB
from simulator.workload.job import TrainingJob


def planned(rank: int, **seconds: float) -> PlannedLayout:
    """Return a layout whose step goes into the given categories, with an interval of 10 %."""
    breakdown = Breakdown(stage=1, seconds={Category(name): s for name, s in seconds.items()})
    return PlannedLayout(
        rank=rank,
        layout=ParallelLayout(tp=rank),
        simulated=True,
        step_time=breakdown.total,
        low=breakdown.total / 1.1,
        high=breakdown.total * 1.1,
        estimate=breakdown.total,
        tokens_per_second=1.0,
        mfu=0.5,
        peak_memory=1.0,
        breakdown=breakdown,
    )


def test_bottleneck_is_the_largest_category_with_its_share() -> None:
    text = bottleneck(planned(1, gemm=6.0, bubble=2.0, data_comm=2.0).breakdown)
    assert text == "matrix products: 60% of the step of stage 1"


def test_experts_and_host_memory_have_names() -> None:
    text = bottleneck(planned(1, gemm=2.0, expert_comm=2.3, host_comm=0.7).breakdown)
    assert text == "expert all-to-all: 46% of the step of stage 1"


def test_every_category_has_a_name() -> None:
    assert all(bottleneck(planned(1, **{kind: 1.0}).breakdown) for kind in Category)


def test_extra_seconds_add_up_to_the_gap() -> None:
    best, other = planned(1, gemm=6.0, bubble=4.0), planned(2, gemm=7.0, bubble=4.5)
    extra = extra_seconds(best.breakdown, other.breakdown)
    assert {c: s for c, s in extra.items() if s} == {Category.GEMM: 1.0, Category.BUBBLE: 0.5}
    assert sum(extra.values()) == other.step_time - best.step_time


def test_runner_up_lost_by_the_categories_that_differ_most() -> None:
    best, other = planned(1, gemm=8.0, bubble=2.0), planned(2, gemm=7.5, bubble=5.0)
    assert why_it_lost(best, other) == (
        "tp2 pp1 dp1 mb1 takes 2.5 s more a step: pipeline bubble +3 s, matrix products -0.5 s"
    )


def test_a_gap_within_the_interval_is_called_so() -> None:
    text = why_it_lost(planned(1, gemm=10.0), planned(2, gemm=10.5))
    assert text.endswith("matrix products +0.5 s; the difference is within the forecast's interval")


@pytest.mark.parametrize(("rate", "cost"), [(None, None), (2.0, 160.0)])
def test_run_totals_are_steps_times_the_step(rate: float | None, cost: float | None) -> None:
    job = TrainingJob(global_batch_size=10, seq_length=100, tokens=3_599_500)
    # 3,600 steps of 10 s, the last one a part filled up: 10 hours on 8 accelerators.
    best = replace(planned(1, gemm=10.0), low=7.2, high=12.0)
    found = run_totals(best, job, 8, Price(per_accelerator_hour=rate))
    assert found == RunTotals(
        steps=3600,
        days=10 / 24,
        days_low=0.3,
        days_high=0.5,
        accelerator_hours=80.0,
        cost=cost,
        currency="USD",
    )


def test_a_job_without_tokens_has_no_run() -> None:
    job = TrainingJob(global_batch_size=10, seq_length=100)
    assert run_totals(planned(1, gemm=10.0), job, 8, Price()) is None


def test_memory_report_names_the_largest_part_and_what_is_over() -> None:
    use = MemoryUse(
        stage=2,
        first_rank=16,
        last_rank=23,
        weights=10 * GIB,
        gradients=20 * GIB,
        optimizer=30 * GIB,
        activations=25 * GIB,
        transient=0.0,
        logits=0.0,
        fragmentation=4 * GIB,
        context=1 * GIB,
        moment="then",
    )
    found = stage_memory_report(use, 80 * GIB)
    assert (found.stage, found.peak, found.over, found.largest, found.moment) == (
        2,
        90 * GIB,
        10 * GIB,
        "optimizer",
        "then",
    )
