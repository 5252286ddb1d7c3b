"""The update on the host: copies, the CPU's share of memory, and what runs beside what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.api import Forecaster
from simulator.errors import UnsupportedError
from simulator.hardware.cluster import Host
from simulator.parallel.layout import ParallelLayout
from simulator.results import Category, MemoryUse
from simulator.workload.stack import Offload
from tests.fakes import changed, fake_node, fake_profile, fake_stack, tiny_model
from tests.simulator.steps import forecaster

PARAMETERS = tiny_model().parameters
DP = 4
shares = st.floats(0.0, 1.0)
PCIE, HOST_MEMORY, DEVICE_MEMORY = 1e9, 80e9, 1e12


def cast_of(
    layout: ParallelLayout, *, overlap: bool = True, pcie: float = PCIE, memory: float = HOST_MEMORY
) -> Forecaster:
    """Return a machine whose eight accelerators share `memory` bytes/s of host memory."""
    host = Host(memory=1e12, pcie_bandwidth=pcie, memory_bandwidth=memory, power=0.0)
    offload = Offload(optimizer=True, optimizer_overlap=overlap, host_efficiency=0.5)
    return forecaster(
        layout,
        stack=fake_stack(offload=offload),
        profile=fake_profile(node=changed(fake_node(), host=host)),
    )


def update(share: float, **machine: object) -> dict[Category, float]:
    layout = ParallelLayout(dp=DP, zero_stage=1, optimizer_offload=share)
    cast = cast_of(layout, **machine)  # type: ignore[arg-type]
    seconds = cast.estimate(layout).breakdown.seconds
    return {kind: seconds[kind] for kind in (Category.OPTIMIZER, Category.HOST_COMM)}


def parts(share: float) -> tuple[float, float, float, float]:
    """Return by hand what the device and the host take, and the two copies, in seconds."""
    shard = PARAMETERS / DP
    # Master 2 x 4, two states 4 x 4, gradient read 2, parameter written 2; norm and zeroing of the
    # whole gradient 2 x 2.
    device = ((1 - share) * 28 * shard + 4 * PARAMETERS) / DEVICE_MEMORY
    host = share * 28 * shard / (0.5 * HOST_MEMORY / 8)
    down = up = share * 2 * shard / PCIE
    return device, host, down, up


def test_without_overlap_copies_and_both_updates_add_up() -> None:
    device, host, down, up = parts(0.5)
    assert update(0.5, overlap=False) == pytest.approx(
        {Category.OPTIMIZER: device + host, Category.HOST_COMM: down + up}
    )


def test_with_overlap_the_slower_update_hides_the_copies() -> None:
    device, host, down, up = parts(0.5)
    assert host > max(device, down, up)
    assert update(0.5) == pytest.approx({Category.OPTIMIZER: host, Category.HOST_COMM: 0.0})


def test_with_overlap_a_slow_link_shows_what_the_updates_leave() -> None:
    _, host, down, _ = parts(1.0)
    slow = 100 * down
    assert update(1.0, pcie=PCIE / 100) == pytest.approx(
        {Category.OPTIMIZER: host, Category.HOST_COMM: slow - host}
    )


def test_nothing_offloaded_is_the_update_on_the_device() -> None:
    device, *_ = parts(0.0)
    assert update(0.0) == pytest.approx({Category.OPTIMIZER: device, Category.HOST_COMM: 0.0})


def test_a_share_too_small_for_a_float_of_seconds_is_none() -> None:
    assert update(5e-324) == update(0.0)


def memory(share: float, zero_stage: int = 1) -> MemoryUse:
    layout = ParallelLayout(dp=DP, zero_stage=zero_stage, optimizer_offload=share)
    (use,) = cast_of(layout).memory(layout)
    return use


@pytest.mark.parametrize("zero_stage", [1, 2])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_states_and_gradients_of_the_share_are_on_the_host(share: float, zero_stage: int) -> None:
    use, shard = memory(share, zero_stage), PARAMETERS / DP
    # Master 4 and two states of 4 leave the device; the pinned gradient, 2, is there besides.
    assert (use.optimizer, use.host) == pytest.approx(
        ((1 - share) * 12 * shard, share * 14 * shard)
    )


def test_a_device_whose_only_copy_was_the_master_keeps_its_own_parameters() -> None:
    plain, moved = memory(0.0, 3), memory(1.0, 3)
    assert (plain.weights, moved.weights) == (0.0, 2 * PARAMETERS / DP)


def test_a_machine_that_does_not_say_how_fast_its_host_is_is_refused() -> None:
    layout = ParallelLayout(dp=DP, zero_stage=1, optimizer_offload=0.5)
    cast = forecaster(layout, stack=fake_stack(offload=Offload(optimizer=True)))
    with pytest.raises(UnsupportedError, match=r"node\.host\.memory_bandwidth"):
        cast.check(layout)


@given(share=shares, more=shares, zero_stage=st.integers(1, 3))
def test_more_offload_never_needs_more_device_memory(
    share: float, more: float, zero_stage: int
) -> None:
    low, high = sorted((share, more))
    slack = 1 + 1e-12
    assert memory(high, zero_stage).reserved <= memory(low, zero_stage).reserved * slack


@given(share=shares, faster=st.floats(1.0, 100.0))
def test_faster_hosts_never_make_a_step_slower(share: float, faster: float) -> None:
    layout = ParallelLayout(dp=DP, zero_stage=1, optimizer_offload=share)
    slow, fast = (
        cast_of(layout, pcie=PCIE * factor, memory=HOST_MEMORY * factor).step_time(layout)
        for factor in (1.0, faster)
    )
    assert fast <= slow * (1 + 1e-12)
