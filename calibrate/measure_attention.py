"""Measures fused attention on one device, forward and backward.

Tensors are used in turn, so that each comes from memory (`Device.copies`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from calibrate.measure_context import Context
from calibrate.measure_device import Device, Work, device_of
from calibrate.measure_loop import measure_runs
from calibrate.measure_tensors import random_tensor, said_how, torch_dtype
from calibrate.measuring import Outcome
from calibrate.points import AttentionPoint


def measure_attention(point: AttentionPoint, context: Context) -> Outcome:
    """Return the seconds of one fused attention call, or of its backward pass alone.

    Queries, keys and values lie as a layer's projections leave them: (batch, seq, heads, head_dim).
    On accelerators the flash kernel is asked for; where it refuses, PyTorch chooses, and
    `Outcome.algorithm` says which of the two it was.

    Raises:
        TooLargeError: the tensors do not fit.
    """
    device = device_of(context.device)
    with device.active():
        name, backend = _attention_backend(point, device)
        with backend():
            rows = point.batch * point.seq * point.head_dim * (point.heads + point.kv_heads)
            size = 2 * rows * torch_dtype(point.dtype).itemsize
            make = _attention_backward if point.backward else _attention_forward
            works = [make(point, device) for _ in range(device.copies(size))]
            run = device.repeated(works)
            outcome = said_how(measure_runs(run, context.ranks, context.limits), run)
    return replace(outcome, algorithm=name)


def _attention_backend(
    point: AttentionPoint, device: Device
) -> tuple[str, Callable[[], AbstractContextManager[None]]]:
    """Return the flash kernel where it takes such a call, else PyTorch's own choice."""
    if device.runtime is None:
        return "default", nullcontext

    def flash() -> AbstractContextManager[None]:
        chosen: AbstractContextManager[None] = sdpa_kernel([SDPBackend.FLASH_ATTENTION])
        return chosen

    try:
        with flash():
            _attention_forward(point, device)()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:
        return "default", nullcontext
    return "flash", flash


def _attention_forward(point: AttentionPoint, device: Device) -> Work:
    tensors = _heads(point, device)

    def forward() -> Tensor:
        with torch.no_grad():
            return _attend(point, *tensors)

    return forward


def _attention_backward(point: AttentionPoint, device: Device) -> Work:
    """Return the gradients of one forward pass that has been run already."""
    inputs = tuple(tensor.requires_grad_() for tensor in _heads(point, device))
    result = _attend(point, *inputs)
    gradient = torch.empty_like(result).uniform_(-1, 1)
    return lambda: torch.autograd.grad(result, inputs, gradient, retain_graph=True)


def _heads(point: AttentionPoint, device: Device) -> tuple[Tensor, ...]:
    dtype = torch_dtype(point.dtype)

    def heads(count: int) -> Tensor:
        shape = point.batch, point.seq, count, point.head_dim
        return random_tensor(device, dtype, *shape).transpose(1, 2)

    return heads(point.heads), heads(point.kv_heads), heads(point.kv_heads)


def _attend(point: AttentionPoint, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    grouped = point.heads != point.kv_heads
    return scaled_dot_product_attention(
        query, key, value, is_causal=point.causal, enable_gqa=grouped
    )
