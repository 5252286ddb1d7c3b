"""Measures memory-bound operators and copies on one device, as eager PyTorch runs them.

Tensors are used in turn, so that each comes from memory (`Device.copies`). `bytes` of a point are
those that the operator's kernels move (`calibrate.operators`): what a device or a release of
PyTorch moves besides, where it needs more kernels, shows as a lower efficiency.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from calibrate.measure_context import Context
from calibrate.measure_device import Device, Work, device_of
from calibrate.measure_loop import measure_runs
from calibrate.measure_tensors import random_tensor, said_how, torch_dtype
from calibrate.measuring import Outcome
from calibrate.operators import TRAFFIC, Operator, row_bytes, whole_rows
from calibrate.points import Direction, HostCopyPoint, MemoryBoundPoint
from simulator.errors import Problem, UnsupportedError

DROPOUT = 0.1
"""Probability; that of GPT-3's recipe."""
_TENSOR_ROWS = 64
"""Rows of one parameter tensor of the optimizer: 4 Mi elements, as a layer's matrices have."""
_TABLE_ROWS = 2
"""Rows of an embedding table over those that are looked up, so that few come twice."""


def measure_memory_bound(point: MemoryBoundPoint, context: Context) -> Outcome:
    """Return the seconds of one operator on tensors that move the point's bytes.

    Raises:
        TooLargeError: the tensors do not fit.
        UnsupportedError: an operator that is not known, or in a format that it is not measured in.
    """
    operator = _operator(point)
    device = device_of(context.device)
    with device.active(), torch.no_grad():
        rows = whole_rows(operator, point.dtype, point.bytes)
        size = rows * row_bytes(operator, point.dtype)
        shape = Shape(device, torch_dtype(point.dtype), rows, TRAFFIC[operator].width)
        works = [MAKERS[operator](shape) for _ in range(device.copies(size))]
        run = device.repeated(works)
        return said_how(measure_runs(run, context.ranks, context.limits), run)


def measure_host_copy(point: HostCopyPoint, context: Context) -> Outcome:
    """Return the seconds of one copy between pinned host memory and the device.

    On a CPU both are its own memory, and the copy reads and writes there.

    Raises:
        TooLargeError: the buffers do not fit.
    """
    device = device_of(context.device)
    with device.active(), torch.no_grad():
        works = [_host_copy(point, device) for _ in range(device.copies(point.bytes))]
        run = device.repeated(works)
        return said_how(measure_runs(run, context.ranks, context.limits), run)


class Shape(NamedTuple):
    """Of the matrix that an operator works on."""

    device: Device
    dtype: torch.dtype
    rows: int
    width: int

    def random(self, rows: int | None = None) -> Tensor:
        """Return a matrix of `rows` rows; None is as many as the operator's."""
        return random_tensor(self.device, self.dtype, rows or self.rows, self.width)

    def indices(self, most: int) -> Tensor:
        """Return a random index below `most` for each row."""
        return torch.randint(most, (self.rows,), device=self.device.torch_device)

    def weight(self) -> Tensor:
        """Return one number a column."""
        return random_tensor(self.device, self.dtype, self.width)


def _add(shape: Shape) -> Work:
    one, other = shape.random(), shape.random()
    return lambda: one + other


def _gelu(shape: Shape) -> Work:
    values = shape.random()
    return lambda: functional.gelu(values)


def _silu_mul(shape: Shape) -> Work:
    gate, up = shape.random(), shape.random()
    return lambda: functional.silu(gate) * up


def _dropout(shape: Shape) -> Work:
    values = shape.random()
    return lambda: functional.dropout(values, DROPOUT, training=True)


def _layer_norm(shape: Shape) -> Work:
    values, weight, bias = shape.random(), shape.weight(), shape.weight()
    return lambda: functional.layer_norm(values, (shape.width,), weight, bias)


def _rms_norm(shape: Shape) -> Work:
    values, weight = shape.random(), shape.weight()
    return lambda: functional.rms_norm(values, (shape.width,), weight)


def _softmax(shape: Shape) -> Work:
    values = shape.random()
    return lambda: functional.softmax(values, dim=-1)


def _cross_entropy(shape: Shape) -> Work:
    logits, targets = shape.random(), shape.indices(shape.width)
    return lambda: functional.cross_entropy(logits, targets)


def _embedding(shape: Shape) -> Work:
    table, indices = shape.random(_TABLE_ROWS * shape.rows), shape.indices(_TABLE_ROWS * shape.rows)
    return lambda: functional.embedding(indices, table)


def _adamw(shape: Shape) -> Work:
    """Return the step of PyTorch's fused AdamW over tensors as large as matrices of a layer."""
    parameters = [part.clone() for part in torch.split(shape.random(), _TENSOR_ROWS)]
    for parameter in parameters:
        parameter.requires_grad_()
        parameter.grad = torch.empty_like(parameter).uniform_(-1, 1)
    captured = shape.device.runtime is not None
    return torch.optim.AdamW(parameters, fused=True, capturable=captured).step


def _cast(shape: Shape) -> Work:
    values = shape.random()
    return lambda: values.to(torch.bfloat16)


def _transpose(shape: Shape) -> Work:
    values = shape.random()
    return lambda: values.t().contiguous()


MAKERS: dict[Operator, Callable[[Shape], Work]] = {
    Operator.ADD: _add,
    Operator.GELU: _gelu,
    Operator.SILU_MUL: _silu_mul,
    Operator.DROPOUT: _dropout,
    Operator.LAYER_NORM: _layer_norm,
    Operator.RMS_NORM: _rms_norm,
    Operator.SOFTMAX: _softmax,
    Operator.CROSS_ENTROPY: _cross_entropy,
    Operator.EMBEDDING: _embedding,
    Operator.ADAMW: _adamw,
    Operator.CAST: _cast,
    Operator.TRANSPOSE: _transpose,
}


def _host_copy(point: HostCopyPoint, device: Device) -> Work:
    pinned = device.runtime is not None
    host = torch.zeros(int(point.bytes), dtype=torch.uint8, pin_memory=pinned)
    there = torch.zeros(int(point.bytes), dtype=torch.uint8, device=device.torch_device)
    source, target = (host, there) if point.direction is Direction.TO_DEVICE else (there, host)
    return lambda: target.copy_(source, non_blocking=True)


def _operator(point: MemoryBoundPoint) -> Operator:
    known = [operator.value for operator in Operator]
    if point.operator not in known:
        rule, fix = "is no operator that can be measured", "one of: " + ", ".join(known)
        raise UnsupportedError(
            Problem(where="point", key="operator", found=point.operator, rule=rule, fix=fix)
        )
    operator = Operator(point.operator)
    only = TRAFFIC[operator].dtype
    if only is not None and point.dtype is not only:
        rule = f"{operator} is measured in {only}"
        raise UnsupportedError(Problem(where="point", key="dtype", found=point.dtype, rule=rule))
    return operator
