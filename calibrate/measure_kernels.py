"""Measures matrix products on one device.

Operands are used in turn, so that each comes from memory (`Device.copies`): so do the weights in a
training step. Activations that the kernel before left in the cache are faster by their reads.
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

import torch
from torch import Tensor

from calibrate.limits import SUSTAIN_SECONDS
from calibrate.measure_context import Context
from calibrate.measure_device import Device, Repeated, Work, device_of, is_out_of_memory
from calibrate.measure_loop import measure_runs
from calibrate.measure_tensors import random_tensor, said_how, torch_dtype
from calibrate.measuring import Outcome, Ranks
from calibrate.points import GemmPoint
from simulator.errors import Problem, UnsupportedError
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmLayout

_FLOAT32 = 4.0
_DEVICE_ERROR = " error: "
"""In the words of the driver ("CUDA error: ", "HIP error: "), behind which nothing works."""


def measure_gemm(point: GemmPoint, context: Context) -> Outcome:
    """Return the seconds of one product as a linear layer runs it.

    Raises:
        TooLargeError: the matrices do not fit.
        UnsupportedError: PyTorch has no such product here.
    """
    device = device_of(context.device)
    torch.set_float32_matmul_precision("high" if point.dtype is Dtype.TF32 else "highest")
    with device.active(), torch.no_grad():
        make = scaled_product_of if point.dtype is Dtype.FP8 else product_of
        size = _FLOAT32 * (point.m * point.n) * point.accumulate + _operand_bytes(point)
        works = [make(point, device) for _ in range(device.copies(size))]
        run = _supported(point, device, works)
        if point.sustained:
            _sustain(run, context.ranks)
        return said_how(measure_runs(run, context.ranks, context.limits), run)


class Operands(NamedTuple):
    """Matrices (m, k) and (k, n), as views of what a linear layer holds."""

    left: Tensor
    right: Tensor


def operands(point: GemmPoint, device: Device) -> Operands:
    """Return row-major matrices as the three products of a linear layer see them.

    Forward X W^T with W (n, k); input gradient dY W; weight gradient dY^T X with dY (k, m).
    """
    m, n, k = point.m, point.n, point.k
    dtype = torch_dtype(point.dtype)
    match point.layout:
        case GemmLayout.FORWARD:
            left, right = random_tensor(device, dtype, m, k), random_tensor(device, dtype, n, k).t()
        case GemmLayout.INPUT_GRADIENT:
            left, right = random_tensor(device, dtype, m, k), random_tensor(device, dtype, k, n)
        case GemmLayout.WEIGHT_GRADIENT:
            left, right = random_tensor(device, dtype, k, m).t(), random_tensor(device, dtype, k, n)
        case _:
            assert_never(point.layout)
    return Operands(left, right)


def product_of(point: GemmPoint, device: Device) -> Work:
    """Return the product into a result of its own, or added to a float32 one."""
    left, right = operands(point, device)
    wide = torch.float32 if point.accumulate else left.dtype
    result = torch.zeros(point.m, point.n, dtype=wide, device=device.torch_device)
    if not point.accumulate:
        return lambda: torch.mm(left, right, out=result)
    if left.dtype is torch.float32:
        return lambda: torch.addmm(result, left, right, out=result)
    added = torch.ops.aten.addmm.dtype_out
    return lambda: added(result, left, right, torch.float32, out=result)


def scaled_product_of(point: GemmPoint, device: Device) -> Work:
    """Return a product of 8-bit numbers with one scale a tensor, into bfloat16.

    Both operands lie along the summed dimension whatever the layout, as Hopper's kernels want
    them: gradients get there by copies that are not timed here. Sums of gradients are kept exact
    (`use_fast_accum` off), as torchao and Transformer Engine do.
    """
    dtype = torch_dtype(point.dtype)
    left = random_tensor(device, dtype, point.m, point.k)
    right = random_tensor(device, dtype, point.n, point.k).t()
    one = torch.ones((), device=device.torch_device)
    fast = point.layout is GemmLayout.FORWARD
    multiply = torch._scaled_mm
    return lambda: multiply(
        left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast
    )


def _supported(point: GemmPoint, device: Device, works: list[Work]) -> Repeated:
    """Return the works repeated, after one of them has run."""
    try:
        if point.accumulate and point.dtype is Dtype.FP8:
            raise NotImplementedError("scaled products only write their result")
        works[0]()
        device.synchronize()
    except (RuntimeError, AttributeError, ValueError) as error:
        if is_out_of_memory(error) or _DEVICE_ERROR in str(error):
            raise
        kind = " added to float32" if point.accumulate else ""
        rule = f"PyTorch has no {point.dtype} product{kind} on {device.torch_device.type}"
        reason = str(error).partition("\n")[0][:200]
        raise UnsupportedError(Problem(where="point", rule=rule, found=reason)) from error
    return device.repeated(works)


def _sustain(run: Repeated, ranks: Ranks) -> None:
    """Run for `SUSTAIN_SECONDS`, the same number of times on all ranks."""
    runs, elapsed = 1, 0.0
    while elapsed < SUSTAIN_SECONDS:
        elapsed += ranks.slowest(run(runs))
        runs *= 2


def _operand_bytes(point: GemmPoint) -> float:
    elements = point.m * point.k + point.k * point.n + point.m * point.n
    return elements * point.dtype.bytes
