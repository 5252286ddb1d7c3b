"""Kernels on this machine's CPU, small: what is multiplied, moved and differentiated is right."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from calibrate.limits import Limits  # noqa: E402
from calibrate.measure_attention import measure_attention  # noqa: E402
from calibrate.measure_context import Context  # noqa: E402
from calibrate.measure_device import device_of  # noqa: E402
from calibrate.measure_kernels import measure_gemm, operands, product_of  # noqa: E402
from calibrate.measure_memory import (  # noqa: E402
    MAKERS,
    Shape,
    measure_host_copy,
    measure_memory_bound,
)
from calibrate.measuring import Outcome  # noqa: E402
from calibrate.operators import TRAFFIC, Operator, row_bytes, whole_rows  # noqa: E402
from calibrate.points import (  # noqa: E402
    AttentionPoint,
    Direction,
    GemmPoint,
    HostCopyPoint,
    MemoryBoundPoint,
)
from simulator.errors import UnsupportedError  # noqa: E402
from simulator.hardware.accelerator import Dtype  # noqa: E402
from simulator.hardware.kernel_constants import GemmLayout, MemoryClass  # noqa: E402

CPU = device_of(torch.device("cpu"))
CONTEXT = Context(
    device=torch.device("cpu"), limits=Limits(block_seconds=1e-3, blocks=3, max_seconds=0.05)
)


def gemm(layout: GemmLayout, *, accumulate: bool = False) -> GemmPoint:
    return GemmPoint(dtype=Dtype.FP32, m=48, n=32, k=64, layout=layout, accumulate=accumulate)


def is_measured(outcome: Outcome) -> bool:
    return 0 < outcome.seconds < 1 and outcome.samples >= 2 and outcome.values == {"graph": 0.0}


@pytest.mark.parametrize("layout", list(GemmLayout))
def test_the_product_of_every_layout_is_right(layout: GemmLayout) -> None:
    left, right = operands(gemm(layout), CPU)

    assert (left.shape, right.shape) == ((48, 64), (64, 32))
    result = product_of(gemm(layout), CPU)()
    assert isinstance(result, torch.Tensor)
    assert result.shape == (48, 32)


def test_layouts_are_stored_as_a_linear_layer_stores_them() -> None:
    # T: the transpose of what is stored row by row, as cuBLAS letters of (right, left) say.
    stored = {
        layout: tuple(matrix.is_contiguous() for matrix in operands(gemm(layout), CPU))
        for layout in GemmLayout
    }

    assert stored == {
        GemmLayout.FORWARD: (True, False),
        GemmLayout.INPUT_GRADIENT: (True, True),
        GemmLayout.WEIGHT_GRADIENT: (False, True),
    }


def test_an_accumulated_product_grows_with_every_run() -> None:
    run = product_of(gemm(GemmLayout.WEIGHT_GRADIENT, accumulate=True), CPU)
    once = run().clone()  # type: ignore[attr-defined]

    assert torch.allclose(run(), 2 * once)


@pytest.mark.parametrize("layout", list(GemmLayout))
@pytest.mark.parametrize("accumulate", [False, True])
def test_every_layout_is_measured(layout: GemmLayout, accumulate: bool) -> None:
    assert is_measured(measure_gemm(gemm(layout, accumulate=accumulate), CONTEXT))


def test_a_product_that_pytorch_does_not_have_is_refused_in_words() -> None:
    point = GemmPoint(dtype=Dtype.BF16, m=16, n=16, k=16, accumulate=True)
    with pytest.raises(UnsupportedError, match="no bf16 product added to float32 on cpu"):
        measure_gemm(point, CONTEXT)


def test_a_format_that_pytorch_does_not_multiply_is_refused_in_words() -> None:
    with pytest.raises(UnsupportedError, match="use bf16, fp16, fp32, fp8, tf32"):
        measure_gemm(GemmPoint(dtype=Dtype.FP4, m=16, n=16, k=16), CONTEXT)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_grouped_attention_is_measured_both_ways(kv_heads: int, backward: bool) -> None:
    point = AttentionPoint(
        dtype=Dtype.FP32,
        batch=2,
        seq=32,
        heads=4,
        kv_heads=kv_heads,
        head_dim=16,
        backward=backward,
    )

    assert is_measured(measure_attention(point, CONTEXT))


@pytest.mark.parametrize("operator", list(Operator))
def test_every_operator_is_measured(operator: Operator) -> None:
    traffic = TRAFFIC[operator]
    point = MemoryBoundPoint(
        operator=operator.value,
        memory_class=traffic.memory_class,
        dtype=Dtype.FP32,
        bytes=8 * row_bytes(operator, Dtype.FP32),
    )

    assert is_measured(measure_memory_bound(point, CONTEXT))


def test_the_bytes_of_operators_are_those_of_their_tensors() -> None:
    rows, megabyte = 256, 256 * 4096 * 4.0
    moved = {name: rows * row_bytes(name, Dtype.FP32) for name in Operator}

    # Reads and writes of 4 MiB tensors; a mask is a byte, a cast writes two.
    assert moved[Operator.ADD] == 3 * megabyte
    assert moved[Operator.RMS_NORM] == 2 * megabyte
    assert moved[Operator.DROPOUT] == 2.25 * megabyte
    # SiLU of the gate, written and read again by the product.
    assert moved[Operator.SILU_MUL] == 5 * megabyte
    assert moved[Operator.CROSS_ENTROPY] == 2 * megabyte * 32768 / 4096
    assert moved[Operator.CAST] == 1.5 * megabyte


def test_operators_yield_as_many_numbers_as_their_traffic_says() -> None:
    shape = Shape(CPU, torch.float32, 4, 4096)
    same = (Operator.ADD, Operator.GELU, Operator.SILU_MUL, Operator.RMS_NORM, Operator.EMBEDDING)

    assert all(MAKERS[name](shape)().shape == (4, 4096) for name in same)  # type: ignore[attr-defined]
    assert MAKERS[Operator.TRANSPOSE](shape)().is_contiguous()  # type: ignore[attr-defined]
    assert MAKERS[Operator.CAST](shape)().dtype is torch.bfloat16  # type: ignore[attr-defined]


def test_bytes_become_the_nearest_whole_rows() -> None:
    assert whole_rows(Operator.ADD, Dtype.BF16, 10.4 * 3 * 2 * 4096) == 10
    assert whole_rows(Operator.ADD, Dtype.BF16, 1.0) == 1


def test_an_unknown_operator_names_the_known_ones() -> None:
    point = MemoryBoundPoint(
        operator="tanh", memory_class=MemoryClass.POINTWISE, dtype=Dtype.FP32, bytes=1e6
    )
    with pytest.raises(UnsupportedError, match="one of: add, gelu"):
        measure_memory_bound(point, CONTEXT)


def test_an_optimizer_step_is_refused_in_a_format_that_it_is_not_measured_in() -> None:
    point = MemoryBoundPoint(
        operator="adamw", memory_class=MemoryClass.OPTIMIZER, dtype=Dtype.BF16, bytes=1e6
    )
    with pytest.raises(UnsupportedError, match="adamw is measured in fp32"):
        measure_memory_bound(point, CONTEXT)


@pytest.mark.parametrize("direction", list(Direction))
def test_copies_to_and_from_the_host_are_measured(direction: Direction) -> None:
    assert is_measured(measure_host_copy(HostCopyPoint(direction=direction, bytes=4096), CONTEXT))
