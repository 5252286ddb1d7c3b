"""Whole steps in 8 and 4 bits: GEMM rates, shared maxima, gathers, estimate against engine."""

from __future__ import annotations

import pytest

from simulator.api import Forecaster
from simulator.cost.maxima import maxima_seconds
from simulator.cost.provenance import utilisation_notes
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import Profile
from simulator.parallel.layout import ParallelLayout
from simulator.results import Category
from simulator.schedule.tasks import Work, WorkKind
from simulator.workload.job import Recipe, TrainingJob
from tests.fakes import (
    PEAK,
    fake_accelerator,
    fake_collectives,
    fake_constants,
    fake_gemm,
    fake_profile,
    fake_stack,
    tiny_job,
    tiny_model,
)
from tests.simulator.steps import forecaster, step_of

LATENCY = 1e-5


def machine(latency: float = 0.0) -> Profile:
    """Twice the rate in 8 bits, four times in 4."""
    peak = {Dtype.BF16: PEAK, Dtype.FP32: PEAK, Dtype.FP8: 2 * PEAK, Dtype.FP4: 4 * PEAK}
    return fake_profile(
        accelerator=fake_accelerator(peak=peak),
        constants=fake_constants(
            gemm=dict.fromkeys(peak, fake_gemm()), collectives=fake_collectives(latency)
        ),
    )


def job_of(recipe: Recipe, **changes: object) -> TrainingJob:
    narrow = Dtype.FP4 if recipe in (Recipe.NVFP4, Recipe.MXFP4) else Dtype.FP8
    return tiny_job(precision=narrow, recipe=recipe, **changes)


def cast_of(layout: ParallelLayout, job: TrainingJob, latency: float = 0.0) -> Forecaster:
    return forecaster(layout, job=job, profile=machine(latency))


def gemm_seconds(job: TrainingJob) -> float:
    plan = ParallelLayout()
    return cast_of(plan, job).estimate(plan).breakdown.seconds[Category.GEMM]


@pytest.mark.parametrize(("recipe", "faster"), [(Recipe.DELAYED, 2), (Recipe.NVFP4, 4)])
def test_layers_run_narrow_and_the_head_in_16_bits(recipe: Recipe, faster: int) -> None:
    model, tokens = tiny_model(), 8 * 32
    layers = 3 * 2 * tokens * 12 * model.hidden_size**2 * model.num_hidden_layers
    head = 3 * 2 * tokens * model.vocab_size * model.hidden_size
    expected = (layers / faster + head) / PEAK
    assert gemm_seconds(job_of(recipe)) == pytest.approx(expected)


@pytest.mark.parametrize("recipe", list(Recipe))
@pytest.mark.parametrize("layout", [{"tp": 2, "sequence_parallel": True}, {"zero_stage": 3}, {}])
def test_estimate_and_engine_agree(recipe: Recipe, layout: dict[str, object]) -> None:
    plan = ParallelLayout.model_validate({"dp": 2, **layout})
    step = step_of(plan, cast_of(plan, job_of(recipe), LATENCY))
    assert max(step.play().end) == pytest.approx(step.timing().step_time, rel=1e-9)


def test_delayed_scaling_ends_each_pass_with_one_small_all_reduce() -> None:
    plan = ParallelLayout(tp=2, dp=2)
    cast = cast_of(plan, job_of(Recipe.DELAYED), LATENCY)
    program = cast.program(plan)
    passes = [Work(kind, 0) for kind in (WorkKind.FORWARD, WorkKind.BACKWARD)]
    found = [maxima_seconds(program, work, cast.costs.collectives) for work in passes]
    # A ring over four ranks: a start and six steps; 4 layers x 8 maxima x 4 bytes hardly weigh.
    assert found == pytest.approx([7 * LATENCY] * 2, rel=1e-3)


@pytest.mark.parametrize("kind", [WorkKind.OPTIMIZER, WorkKind.BACKWARD_WEIGHT])
def test_nothing_else_ends_with_one(kind: WorkKind) -> None:
    plan = ParallelLayout(tp=2, dp=2)
    cast = cast_of(plan, job_of(Recipe.DELAYED), LATENCY)
    assert maxima_seconds(cast.program(plan), Work(kind, 0), cast.costs.collectives) == 0.0


def test_8_bit_parameters_halve_what_zero_1_gathers() -> None:
    plan = ParallelLayout(dp=2, zero_stage=1)
    gathers = []
    for narrow in (False, True):
        job = job_of(Recipe.DELAYED, fp8_parameters=narrow)
        gathers += step_of(plan, cast_of(plan, job)).seconds(WorkKind.GATHER_CHUNK)
    linear = 4 * 12 * 64 * 64
    ring = (2 * tiny_model().parameters - linear) / (2 * tiny_model().parameters)
    assert gathers[1] / gathers[0] == pytest.approx(ring)


def test_a_stack_may_say_how_fast_its_own_narrow_products_are() -> None:
    plan, job = ParallelLayout(), job_of(Recipe.DELAYED)
    stack = fake_stack(fit={"spread": 0.1, "spread_source": "made up", "fp8": {"fake": 2.0}})
    plain = cast_of(plan, job).estimate(plan).breakdown.seconds[Category.GEMM]
    slow = forecaster(plan, job=job, profile=machine(), stack=stack).estimate(plan)
    model = tiny_model()
    layers = 3 * 2 * 8 * 32 * 12 * model.hidden_size**2 * model.num_hidden_layers
    added = layers / (2 * PEAK)
    assert slow.breakdown.seconds[Category.GEMM] == pytest.approx(plain + added)


def test_narrow_forecasts_say_that_nothing_was_fitted_on_such_runs() -> None:
    warnings = cast_of(ParallelLayout(), job_of(Recipe.DELAYED)).provenance.warnings
    assert any("fp8: no constant of fake was fitted on such runs" in line for line in warnings)


@pytest.mark.parametrize(("utilisation", "count"), [(0.5, 0), (1.0, 0), (1.2, 1)])
def test_an_impossible_utilisation_is_explained(utilisation: float, count: int) -> None:
    assert len(utilisation_notes(utilisation)) == count
