"""Activations in host memory: what is copied, what it hides behind, what stays on the device."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.hardware.cluster import Host
from simulator.parallel.blocks import layer_passes
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ParallelLayout, Recompute
from simulator.parallel.offload import offloaded, staged_bytes
from simulator.parallel.shard import make_shard
from simulator.parallel.work import CommWork
from simulator.results import Category, MemoryUse
from simulator.units import GB
from simulator.workload.stack import Offload
from simulator.workload.stack_choices import AttentionKernel
from tests.fakes import changed, fake_node, fake_profile, fake_stack, tiny_job, tiny_model
from tests.simulator.steps import forecaster, step_of

PAPER = fake_stack(
    kernels={"attention": AttentionKernel.UNFUSED, "dropout": True},
    offload=Offload(activations=True, with_recompute=True, optimizer=True, host_efficiency=0.5),
)
SBH = 32 * 64
LAYER = SBH * (34 + 5 * 4 * 32 / 64)
MODEL = tiny_model(num_hidden_layers=6)


def memory(layout: ParallelLayout) -> MemoryUse:
    (use,) = forecaster(layout, stack=PAPER, model=MODEL).memory(layout)
    return use


def breakdown(layout: ParallelLayout, pcie: float = 50 * GB) -> dict[Category, float]:
    host = Host(memory=1e12, pcie_bandwidth=pcie, power=0.0)
    profile = fake_profile(node=changed(fake_node(), host=host))
    cast = forecaster(layout, stack=PAPER, model=MODEL, profile=profile)
    return dict(cast.estimate(layout).breakdown.seconds)


def test_what_a_layer_keeps_goes_down_once_and_comes_back_once() -> None:
    shard = make_shard(ParallelLayout(), tiny_job(), PAPER, 8)
    plain = layer_passes(MODEL.layers()[0], shard, Recompute.NONE)
    moved = offloaded(plain)
    copies = [
        (p.name, p.collective, p.payload)
        for block in (moved.forward, moved.backward)
        for p in block.pieces
        if isinstance(p, CommWork)
    ]
    assert (moved.kept, moved.offloaded) == (0.0, LAYER)
    assert copies == [
        ("layer.offload", Collective.HOST_COPY, LAYER),
        ("layer.reload", Collective.HOST_COPY, LAYER),
    ]


def test_a_copy_hides_behind_every_operator_of_its_block() -> None:
    shard = make_shard(ParallelLayout(), tiny_job(), PAPER, 8)
    moved = offloaded(layer_passes(MODEL.layers()[0], shard, Recompute.NONE))
    *operators, copy = moved.forward.pieces
    assert isinstance(copy, CommWork)
    assert copy.hidden_by == tuple(piece.name for piece in operators)


def test_offloaded_layers_leave_two_buffers_on_the_device() -> None:
    plain, moved = (memory(ParallelLayout(offload_layers=n)) for n in (0, 5))
    assert (
        plain.activations - moved.activations,
        moved.transient - plain.transient,
        moved.host,
    ) == (5 * LAYER, 2 * LAYER, 5 * LAYER)


@pytest.mark.parametrize(("layers", "buffers"), [(0, 0), (1, 1), (2, 2), (3, 2), (5, 2)])
def test_fewer_layers_than_buffers_fill_fewer(layers: int, buffers: int) -> None:
    plain, moved = (memory(ParallelLayout(offload_layers=n)) for n in (0, layers))
    assert moved.transient - plain.transient == buffers * LAYER


def test_buffers_hold_the_two_largest_layers() -> None:
    assert staged_bytes([(1.0, 1), (5.0, 1), (3.0, 4)]) == 8.0


def test_offloading_with_full_recompute_moves_the_inputs_only() -> None:
    use = memory(ParallelLayout(offload_layers=5, recompute=Recompute.FULL))
    assert use.host == 5 * 2 * SBH


def test_a_fast_link_hides_all_copies() -> None:
    assert breakdown(ParallelLayout(offload_layers=5), pcie=1e18)[Category.HOST_COMM] == 0.0


def test_a_slow_link_exposes_what_exceeds_the_computation_of_a_layer() -> None:
    # At 1 MB/s a layer's copy takes 0.09 s, all its kernels some microseconds.
    layout = ParallelLayout(offload_layers=5)
    plain, moved = breakdown(ParallelLayout()), breakdown(layout, pcie=1e6)
    cast = forecaster(layout, stack=PAPER, model=MODEL)
    program = cast.program(layout)
    work = program.chunks[0].whole.layers[0][0]
    priced = cast.costs.priced_pass(program, work)
    computed = sum(
        piece.seconds
        for block in (priced.forward, priced.backward)
        for piece in block.pieces
        if piece.category is not Category.HOST_COMM
    )
    # Five copies each way in every micro-batch, behind the six layers.
    exposed = 8 * (5 * 2 * LAYER / 1e6 - 6 * computed)
    assert moved[Category.HOST_COMM] == pytest.approx(exposed, rel=1e-9)
    assert sum(moved.values()) == pytest.approx(sum(plain.values()) + exposed)


@pytest.mark.parametrize(
    ("offload", "windows"),
    [(1, [6]), (2, [3, 3]), (4, [2, 2, 1, 1]), (5, [2, 1, 1, 1, 1])],
)
def test_copies_are_spread_over_all_layers(offload: int, windows: list[int]) -> None:
    # Transformer Engine: 4 copies of 6 layers are waited for behind layers 2, 4, 5 and 6.
    layout = ParallelLayout(offload_layers=offload)
    (chunk,) = forecaster(layout, stack=PAPER, model=MODEL).program(layout).chunks
    works = [work for work, count in chunk.whole.layers for _ in range(count)]
    assert [work.window for work in works if work.offload] == windows


def test_a_copy_may_take_as_long_as_the_layers_of_its_window() -> None:
    shard = make_shard(ParallelLayout(), tiny_job(), PAPER, 8)
    plain = layer_passes(MODEL.layers()[0], shard, Recompute.NONE)
    copy = offloaded(plain, 2).forward.pieces[-1]
    assert isinstance(copy, CommWork)
    assert copy.hidden_by == 2 * tuple(piece.name for piece in plain.forward.pieces)


@given(layers=st.integers(0, 4), dp=st.sampled_from((1, 2)), recompute=st.sampled_from(Recompute))
def test_more_offloaded_layers_never_need_more_device_memory_nor_less_time(
    layers: int, dp: int, recompute: Recompute
) -> None:
    layouts = [
        ParallelLayout(dp=dp, recompute=recompute, offload_layers=n) for n in (layers, layers + 1)
    ]
    casts = [forecaster(layout, stack=PAPER, model=MODEL) for layout in layouts]
    pairs = list(zip(casts, layouts, strict=True))
    peaks = [cast.peak_memory(layout) for cast, layout in pairs]
    times = [cast.step_time(layout) for cast, layout in pairs]
    slack = 1 + 1e-12
    assert peaks[1] <= peaks[0] * slack
    assert times[0] <= times[1] * slack


@given(layers=st.integers(0, 5), share=st.sampled_from((0.0, 0.25, 1.0)), stage=st.integers(1, 3))
def test_estimate_and_simulation_agree_on_what_is_offloaded(
    layers: int, share: float, stage: int
) -> None:
    layout = ParallelLayout(dp=2, zero_stage=stage, offload_layers=layers, optimizer_offload=share)
    host = Host(memory=1e12, pcie_bandwidth=1e8, memory_bandwidth=1e9, power=0.0)
    profile = fake_profile(node=changed(fake_node(), host=host))
    step = step_of(layout, forecaster(layout, stack=PAPER, model=MODEL, profile=profile))
    assert max(step.play().end) == pytest.approx(step.timing().step_time, rel=1e-9)


def test_what_does_not_fit_in_host_memory_does_not_fit() -> None:
    layout = ParallelLayout(offload_layers=5)
    held = 8 * (5 * LAYER)
    for capacity, fits in ((held, True), (0.99 * held, False)):
        host = Host(memory=capacity, pcie_bandwidth=1e9, power=0.0)
        profile = fake_profile(node=changed(fake_node(), host=host))
        cast = forecaster(layout, stack=PAPER, model=MODEL, profile=profile)
        result = cast.estimate(layout)
        # Eight accelerators share the node's memory.
        assert (result.host_memory, result.host_capacity) == (held / 8, capacity / 8)
        assert (result.fits, cast.fits_host(layout)) == (fits, fits)
