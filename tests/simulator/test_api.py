"""Forecasts of whole steps: the two interpreters agree, closed forms hold, nothing is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simulator.api import Forecaster
from simulator.errors import InputError
from simulator.hardware.accelerator import Dtype
from simulator.hardware.constants import FittedConstants
from simulator.parallel.layout import DataParallel, ParallelLayout, Recompute, ScheduleName
from simulator.parallel.placement import Placement, placement_of
from simulator.results import Category, StepResult
from simulator.schedule.registry import SCHEDULES
from simulator.schedule.tasks import WorkKind
from simulator.workload.stack_choices import AttentionKernel
from tests.fakes import (
    PEAK,
    changed,
    fake_accelerator,
    fake_attention,
    fake_collectives,
    fake_constants,
    fake_gemm,
    fake_node,
    fake_profile,
    fake_stack,
    gpt3_175b,
    tiny_job,
    tiny_model,
)
from tests.simulator.steps import forecaster, may_share_a_link, step_of
from tests.simulator.strategies import Setup, setups

ALIKE = 1e-9


def domains(draw: st.DataObject, setup: Setup) -> int:
    """Return accelerators a scale-up domain: one, those of a stage, or all."""
    return draw.draw(st.sampled_from((1, setup.block, setup.layout.world_size)))


# The two interpreters


@given(setups(), st.data())
def test_estimate_and_simulation_agree_where_no_transfers_share_a_link(
    setup: Setup, data: st.DataObject
) -> None:
    cast = setup.forecaster(domains(data, setup))
    assume(not may_share_a_link(step_of(setup.layout, cast)))
    estimated = cast.estimate(setup.layout).step_time
    assert cast.simulate(setup.layout).step_time == pytest.approx(estimated, rel=ALIKE)


@given(setups())
def test_they_agree_where_a_stage_fills_a_domain_and_sends_leave_it_whole(setup: Setup) -> None:
    # Data-parallel traffic is then on the scale-up link and pipeline sends on the NIC.
    whole = changed(setup.stack, overlap=changed(setup.stack.overlap, pipeline_slices=False))
    setup = replace(setup, stack=whole)
    cast = setup.forecaster(setup.block)
    estimated = cast.estimate(setup.layout).step_time
    assert cast.simulate(setup.layout).step_time == pytest.approx(estimated, rel=ALIKE)


@given(setups(pipelined=False), st.sampled_from((1, 2, 8)))
def test_they_agree_without_a_pipeline_on_any_cluster(setup: Setup, domain: int) -> None:
    cast = setup.forecaster(domain)
    estimated = cast.estimate(setup.layout).step_time
    assert cast.simulate(setup.layout).step_time == pytest.approx(estimated, rel=ALIKE)


@given(setups(), st.data())
def test_contention_never_makes_a_step_faster(setup: Setup, data: st.DataObject) -> None:
    cast = setup.forecaster(domains(data, setup))
    alone = cast.estimate(setup.layout).step_time
    assert cast.simulate(setup.layout).step_time >= alone * (1 - ALIKE)


def test_overlapped_gradients_and_sends_on_one_nic_slow_each_other() -> None:
    layout = ParallelLayout(pp=2, dp=2)
    cast = forecaster(
        layout,
        profile=fake_profile(node=fake_node(domain_size=1)),
        stack=fake_stack(overlap={"gradient_reduce": True}, bucket_parameters=1),
    )
    assert may_share_a_link(step_of(layout, cast))
    assert cast.simulate(layout).step_time > cast.estimate(layout).step_time


@given(setups(), st.data())
def test_estimated_time_is_that_of_the_full_estimate(setup: Setup, data: st.DataObject) -> None:
    cast = setup.forecaster(domains(data, setup))
    assert cast.step_time(setup.layout) == cast.estimate(setup.layout).step_time


@given(setups(), st.integers(0, 3), st.floats(1.0, 3.0))
def test_a_slow_stage_never_makes_a_step_faster(setup: Setup, stage: int, factor: float) -> None:
    cast = setup.forecaster(setup.block)
    slowdown = [1.0] * setup.layout.pp
    slowdown[stage % setup.layout.pp] = factor
    slow = cast.simulate(setup.layout, slowdown=slowdown).step_time
    assert slow >= cast.estimate(setup.layout).step_time * (1 - ALIKE)


# Memory


@given(setups(), st.data())
def test_peak_memory_is_that_of_the_fullest_stage(setup: Setup, data: st.DataObject) -> None:
    cast = setup.forecaster(domains(data, setup))
    fullest = max(use.reserved for use in cast.memory(setup.layout))
    assert cast.peak_memory(setup.layout) == fullest


# The breakdown


@given(setups(), st.data())
def test_estimated_breakdown_adds_up_to_the_step(setup: Setup, data: st.DataObject) -> None:
    result = setup.forecaster(domains(data, setup)).estimate(setup.layout)
    assert result.breakdown.total == pytest.approx(result.step_time, rel=ALIKE)


@given(setups(), st.data())
def test_simulated_breakdown_adds_up_to_the_step(setup: Setup, data: st.DataObject) -> None:
    result = setup.forecaster(domains(data, setup)).simulate(setup.layout)
    assert result.breakdown.total == pytest.approx(result.step_time, rel=ALIKE)


@given(setups(), st.lists(st.floats(1.0, 2.0), min_size=4, max_size=4))
def test_breakdown_of_a_slowed_step_adds_up_too(setup: Setup, factors: list[float]) -> None:
    slowdown = factors[: setup.layout.pp]
    result = setup.forecaster(setup.block).simulate(setup.layout, slowdown=slowdown)
    assert result.breakdown.total == pytest.approx(result.step_time, rel=ALIKE)


@given(setups(), st.data())
def test_no_category_is_negative(setup: Setup, data: st.DataObject) -> None:
    cast = setup.forecaster(domains(data, setup))
    results = [cast.estimate(setup.layout), cast.simulate(setup.layout)]
    assert min(min(result.breakdown.seconds.values()) for result in results) >= 0


# FLOP in closed form

GPT_SIZES = st.tuples(
    st.integers(1, 6),  # layers
    st.sampled_from((64, 128, 256)),  # hidden size
    st.sampled_from((1024, 4096)),  # vocabulary
    st.sampled_from((32, 64, 128)),  # sequence length
    st.integers(1, 8),  # batch
)


def flops_of(sizes: tuple[int, int, int, int, int], layout: ParallelLayout) -> StepResult:
    layers, hidden, vocab, seq, batch = sizes
    return forecaster(
        layout,
        model=tiny_model(num_hidden_layers=layers, hidden_size=hidden, vocab_size=vocab),
        job=tiny_job(global_batch_size=batch, seq_length=seq),
        stack=fake_stack(kernels={"attention": AttentionKernel.UNFUSED}),
    ).estimate(layout)


@given(GPT_SIZES)
def test_model_flops_of_a_gpt_are_three_forward_passes(
    sizes: tuple[int, int, int, int, int],
) -> None:
    # Narayanan et al. 2021 (SC'21), appendix, without recomputation.
    layers, h, vocab, s, batch = sizes
    linear, scores, logits = 72 * layers * h**2, 12 * layers * s * h, 6 * h * vocab
    assert flops_of(sizes, ParallelLayout()).model_flops == batch * s * (linear + scores + logits)


@given(GPT_SIZES)
def test_hardware_flops_with_full_recompute_are_equation_3_of_narayanan(
    sizes: tuple[int, int, int, int, int],
) -> None:
    layers, h, vocab, s, batch = sizes
    flops = 96 * batch * s * layers * h**2 * (1 + s / (6 * h) + vocab / (16 * layers * h))
    result = flops_of(sizes, ParallelLayout(recompute=Recompute.FULL))
    assert result.hardware_flops == pytest.approx(flops, rel=1e-12)


@given(setups())
def test_model_flops_do_not_depend_on_the_layout(setup: Setup) -> None:
    cast = setup.forecaster(8)
    plain = ParallelLayout()
    alone = Forecaster(setup.model, cast.job, setup.stack, cast.profile, 1)
    assert cast.estimate(setup.layout).model_flops == alone.estimate(plain).model_flops


def test_mfu_of_a_gpu_that_only_multiplies_is_one() -> None:
    layout = ParallelLayout()
    machine = fake_profile(accelerator=fake_accelerator(memory_bandwidth=1e30))
    stack = fake_stack(kernels={"attention": AttentionKernel.UNFUSED})
    result = forecaster(layout, profile=machine, stack=stack).estimate(layout)
    assert (result.mfu, result.hfu, result.peak_flops) == pytest.approx((1.0, 1.0, PEAK))


def test_published_parameter_count_of_the_175b_model() -> None:
    # Narayanan et al. 2021 (SC'21), equation 2: 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)).
    layers, h, vocab, s = 96, 12288, 51200, 2048
    blocks_and_ends = 12 * layers * h**2 + 13 * layers * h + (vocab + s) * h
    assert gpt3_175b().parameters == blocks_and_ends + 2 * h


# Strategies


def test_a_step_without_any_communication_is_its_passes_and_its_update() -> None:
    layout = ParallelLayout()
    result = forecaster(layout, job=tiny_job(global_batch_size=3)).estimate(layout)
    step = step_of(layout)
    (forward,), (backward,), (update,) = map(
        step.seconds, (WorkKind.FORWARD, WorkKind.BACKWARD, WorkKind.OPTIMIZER)
    )
    assert result.step_time == pytest.approx(3 * (forward + backward) + update)


@pytest.mark.parametrize("sync_every", [1, 4, 100])
def test_local_sgd_takes_a_mean_step(sync_every: int) -> None:
    layout = ParallelLayout(dp=4, data_parallel=DataParallel.LOCAL_SGD, sync_every=sync_every)
    alone = forecaster(ParallelLayout(), job=tiny_job(global_batch_size=2))
    # Parameters of 2 bytes, all-reduced over a ring of four.
    average = 2 * 3 / 4 * tiny_model().parameters * 2 / 100e9
    assert forecaster(layout).estimate(layout).step_time == pytest.approx(
        alone.estimate(ParallelLayout()).step_time + average / sync_every
    )


def test_parameter_server_reduces_and_broadcasts() -> None:
    layout = ParallelLayout(dp=4, data_parallel=DataParallel.PARAMETER_SERVER)
    alone = forecaster(ParallelLayout(), job=tiny_job(global_batch_size=2))
    # A chain passes all 2-byte gradients on to the server, and all 2-byte parameters back.
    there_and_back = 2 * tiny_model().parameters * 2 / 100e9
    assert forecaster(layout).estimate(layout).step_time == pytest.approx(
        alone.estimate(ParallelLayout()).step_time + there_and_back
    )


def test_overlap_never_hides_more_than_there_is() -> None:
    layout = ParallelLayout(dp=4)
    times = {
        overlaps: forecaster(
            layout,
            stack=fake_stack(overlap={"gradient_reduce": overlaps}, bucket_parameters=1),
        )
        .estimate(layout)
        .step_time
        for overlaps in (False, True)
    }
    step = step_of(layout)
    (backward,), (reduction,) = step.seconds(WorkKind.BACKWARD), step.seconds(WorkKind.REDUCE)
    assert times[False] - min(backward, reduction) <= times[True] < times[False]


# Faster machines and other units


@given(setups(), st.floats(1.0, 10.0), st.floats(1.0, 10.0), st.sampled_from((1, 4, 64)))
def test_faster_links_never_make_a_step_slower(
    setup: Setup, scale_up: float, nic: float, domain: int
) -> None:
    cast = setup.forecaster(domain)
    node = fake_node(
        domain_size=domain, accelerators=domain, scale_up=100e9 * scale_up, nic=10e9 * nic
    )
    machine = fake_profile(node=node, constants=cast.profile.constants)
    faster = Forecaster(setup.model, cast.job, setup.stack, machine, cast.world_size)
    assert faster.step_time(setup.layout) <= cast.step_time(setup.layout) * (1 + ALIKE)


def slowed(cast: Forecaster, factor: float) -> Forecaster:
    """Return a forecaster in which every second of machine and stack is `factor` seconds."""
    machine, node = cast.profile, cast.profile.node
    assert node.nic is not None
    accelerator = changed(
        machine.accelerator,
        peak={dtype: rate / factor for dtype, rate in machine.accelerator.peak.items()},
        memory_bandwidth=machine.accelerator.memory_bandwidth / factor,
    )
    slow_node = changed(
        node,
        scale_up=changed(node.scale_up, bandwidth=node.scale_up.bandwidth / factor),
        nic=changed(node.nic, bandwidth=node.nic.bandwidth / factor, latency=2e-6 * factor),
    )
    kernels = changed(cast.stack.kernels, cpu_launch=cast.stack.kernels.cpu_launch * factor)
    return Forecaster(
        cast.model,
        cast.job,
        changed(cast.stack, kernels=kernels),
        fake_profile(accelerator=accelerator, node=slow_node, constants=constants_of(factor)),
        cast.world_size,
    )


def constants_of(second: float) -> FittedConstants:
    """Return constants with every latency set, for a unit of time of `second`."""
    return fake_constants(
        gemm={
            Dtype.BF16: fake_gemm(
                start=1e-6 * second,
                k_latency=1e-9 * second,
                split_start=1e-6 * second,
                throttle=0.2,
                throttle_time=1e-4 * second,
                memory_efficiency=0.8,
                tiles=((32, 32), (16, 64)),
                splits=(1, 2),
            )
        },
        attention=fake_attention(start=2e-6 * second, softmax_flops=3.0, memory_efficiency=0.9),
        collectives=fake_collectives(3e-6 * second),
    )


@given(setups(), st.floats(1e-3, 1e3), st.sampled_from((1, 4, 64)))
def test_step_time_rescales_with_the_second(setup: Setup, factor: float, domain: int) -> None:
    cast = slowed(setup.forecaster(domain), 1.0)
    expected = cast.step_time(setup.layout) * factor
    assert slowed(cast, factor).step_time(setup.layout) == pytest.approx(expected, rel=ALIKE)


@given(setups(), st.floats(1e-2, 1e2), st.sampled_from((1, 4, 64)))
def test_data_parallel_traffic_does_not_depend_on_the_unit_of_bytes(
    setup: Setup, factor: float, domain: int
) -> None:
    cast = setup.forecaster(domain)
    numerics = setup.stack.numerics
    larger = {
        name: getattr(numerics, name) * factor
        for name in ("parameter_bytes", "reduce_bytes", "gather_bytes")
    }
    node = fake_node(
        domain_size=domain, accelerators=domain, scale_up=100e9 * factor, nic=10e9 * factor
    )
    other = Forecaster(
        setup.model,
        cast.job,
        changed(setup.stack, numerics=changed(numerics, **larger)),
        fake_profile(node=node, constants=cast.profile.constants),
        cast.world_size,
    )
    kinds = (WorkKind.REDUCE, WorkKind.GATHER, WorkKind.GATHER_CHUNK, WorkKind.BROADCAST)
    before, after = (step_of(setup.layout, each) for each in (cast, other))
    assert [after.seconds(kind) for kind in kinds] == [
        pytest.approx(before.seconds(kind), rel=ALIKE) for kind in kinds
    ]


# Results


def test_a_layout_must_fill_the_cluster() -> None:
    cast = forecaster(ParallelLayout(tp=4, dp=2))
    with pytest.raises(InputError) as caught:
        cast.check(ParallelLayout(tp=4), "run.toml")
    (problem,) = caught.value.problems
    assert (problem.rule, problem.found, problem.fix) == (
        "must use all 8 accelerators of the cluster",
        "tp x cp x dp x pp = 4",
        "dp = 2",
    )


def test_a_layout_that_cannot_fill_the_cluster_is_told_so() -> None:
    cast = forecaster(ParallelLayout(dp=8))
    with pytest.raises(InputError, match="another tp, cp or pp, or another number of nodes"):
        cast.check(ParallelLayout(tp=3))


def test_interval_holds_the_errors_of_stack_and_machine() -> None:
    layout = ParallelLayout()
    machine = fake_profile(constants=fake_constants(spread=0.24))
    result = forecaster(layout, profile=machine).estimate(layout)
    # sqrt(0.1^2 + 0.24^2) = 0.26.
    assert (result.low, result.high) == pytest.approx(
        (result.step_time / 1.26, result.step_time * 1.26)
    )


def test_nominal_constants_are_a_warning_in_the_result() -> None:
    layout = ParallelLayout()
    warnings = forecaster(layout).estimate(layout).provenance.warnings
    assert warnings == ("fake: not calibrated; assumed: gemm",)


@given(setups(), st.data())
def test_spans_of_a_stream_never_overlap(setup: Setup, data: st.DataObject) -> None:
    spans = setup.forecaster(domains(data, setup)).simulate(setup.layout).spans
    last: dict[tuple[int, str], float] = {}
    early = []
    for span in sorted(spans, key=lambda span: span.start):
        lane = (span.stage, span.stream)
        early += [span] if span.start < last.get(lane, 0.0) else []
        last[lane] = span.stop
    assert early == []


def test_spans_name_pass_micro_batch_and_chunk() -> None:
    layout = ParallelLayout(pp=2)
    cast = forecaster(layout, job=tiny_job(global_batch_size=1))
    spans = cast.simulate(layout).spans
    assert [(s.stage, s.stream, s.name, s.micro_batch, s.chunk) for s in spans] == [
        (0, "compute", "forward", 0, 0),
        (0, "send", "send_forward", 0, 0),
        (1, "compute", "forward", 0, 1),
        (1, "compute", "backward", 0, 1),
        (1, "send", "send_backward", 0, 1),
        (0, "compute", "backward", 0, 0),
        (0, "compute", "optimizer", None, 0),
        (1, "compute", "optimizer", None, 0),
    ]


def test_launch_bound_steps_wait_for_the_cpu() -> None:
    layout = ParallelLayout()
    stack = fake_stack(kernels={"cpu_launch": 1.0})
    result = forecaster(layout, stack=stack).estimate(layout)
    assert result.breakdown.seconds[Category.LAUNCH] == pytest.approx(result.step_time, rel=1e-3)


@pytest.mark.parametrize("name", list(SCHEDULES))
def test_an_estimate_processes_no_events(name: ScheduleName) -> None:
    loops = name is not ScheduleName.INTERLEAVED and placement_of(name) is Placement.LOOP
    vpp = 1 if loops else 2
    layout = ParallelLayout(pp=2, vpp=vpp, schedule=name)
    result = forecaster(layout).estimate(layout)
    assert (result.events, result.spans) == (0, ())
