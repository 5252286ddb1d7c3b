"""Memory-bound times: a line in the bytes, with a slope a class."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.memory_bound import memory_bound_seconds
from simulator.errors import InputError
from simulator.files import parse_record
from simulator.hardware.accelerator import Accelerator, Dtype
from simulator.hardware.kernel_constants import MemoryBoundConstants, MemoryClass
from simulator.units import GB, GIB, TERA, US

GPU = Accelerator(
    name="a terabyte a second",
    peak={Dtype.BF16: 100 * TERA},
    memory=80 * GIB,
    memory_bandwidth=1000 * GB,
    l2=0.0,
    compute_units=10,
    clock=1e9,
    power=100.0,
)
HALF = MemoryBoundConstants(start=5 * US, efficiency=dict.fromkeys(MemoryClass, 0.5))
bytes_moved = st.floats(min_value=0, max_value=1e12)


def seconds(moved: float, kind: MemoryClass = MemoryClass.NORM) -> float:
    return memory_bound_seconds(moved, kind, gpu=GPU, constants=HALF)


def test_a_gigabyte_at_half_a_terabyte_a_second_takes_two_milliseconds() -> None:
    assert seconds(1 * GB) == pytest.approx(2000 * US + 5 * US)


@given(one=bytes_moved, other=bytes_moved, kind=st.sampled_from(MemoryClass))
def test_fusing_two_kernels_saves_one_start(one: float, other: float, kind: MemoryClass) -> None:
    apart = seconds(one, kind) + seconds(other, kind)
    assert apart - seconds(one + other, kind) == pytest.approx(5 * US, rel=1e-6)


def test_a_file_that_forgets_a_class_is_told_which() -> None:
    shares = {kind.value: 0.5 for kind in MemoryClass if kind is not MemoryClass.COPY}
    with pytest.raises(InputError, match="needs a value for: copy"):
        parse_record(MemoryBoundConstants, {"start": "3 us", "efficiency": shares}, "gpu.toml")


def test_a_share_above_the_nominal_bandwidth_is_refused() -> None:
    shares = {kind.value: 1.2 for kind in MemoryClass}
    with pytest.raises(InputError, match="at most 1"):
        parse_record(MemoryBoundConstants, {"start": "3 us", "efficiency": shares}, "gpu.toml")
