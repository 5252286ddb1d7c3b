"""Measures how much a kernel and a collective on the same device slow each other down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from calibrate.group_ranks import ranks_of
from calibrate.limits import Limits
from calibrate.measure_beside import Side, measure_beside
from calibrate.measure_collectives import prepared
from calibrate.measure_context import Context
from calibrate.measure_device import COLD, Device, Work, device_of
from calibrate.measure_loop import Run, measure_runs
from calibrate.measure_ranks import made_by_all
from calibrate.measure_tensors import random_tensor
from calibrate.measure_timings import looking_on
from calibrate.measuring import Outcome, Ranks
from calibrate.points import CollectivePoint, InterferencePoint
from calibrate.records import VALUES
from simulator.units import US
from simulator.workload.stack_choices import KernelClass

LEAST_SECONDS = 300 * US
"""Of the kernel alone: many times what its launch takes (some 10 us)."""
_MEASUREMENTS = 4
"""Each kind of work alone and beside the other; they share the point's time."""
_EDGE, _SEQ, _HEADS, _HEAD_DIM = 256, 256, 8, 128
"""Of the smallest product and the smallest attention; both double until they take long enough."""
_TRIES = 3
"""Of a kernel while its size is sought; the first is slower."""
_TENSORS = 3
"""Two that are read and one that is written by a sum."""


def measure_interference(point: InterferencePoint, context: Context) -> Outcome:
    """Return the seconds of the kernel beside the collective, and `VALUES["interference"]`.

    k is compute_beside / compute_alone and m communication_beside / communication_alone, each the
    slowest rank's; while one is timed, the other runs all the time. The spread is the largest of
    the four.

    Raises:
        InputError, TooLargeError, UnsupportedError, WrongResultError: as `measure_collective`.
        UncoveredError: together they are too slow to tell.
    """
    call = _call_of(point, context)
    kernels, calls = device_of(context.device), device_of(context.device)
    with kernels.active(), torch.no_grad():
        operation = prepared(call, ranks_of(call, context.world), context)
        kernel = long_enough(point.kernel, kernels, context.ranks)
        takes_part = operation is not None
        compute = _side(kernel if takes_part else None, kernels, context)
        communication = _side(operation.run if operation else None, calls, context)
        limits = _part_of(context.limits)
        together = measure_beside(compute, communication, context.ranks, limits)
        other = measure_beside(communication, compute, context.ranks, limits)
    seconds = (compute.alone, together.seconds, communication.alone, other.seconds)
    values = dict(zip(VALUES["interference"], seconds, strict=True))
    spread = max(each.spread for each in (compute, communication, together, other))
    return replace(together, spread=spread, values=values)


def _call_of(point: InterferencePoint, context: Context) -> CollectivePoint:
    """Return the collective, in float32 over the first ranks of the world."""
    return CollectivePoint(
        collective=point.collective,
        ranks=point.ranks,
        nodes=-(-point.ranks // context.world.local_size),
        bytes=point.bytes,
    )


def _side(work: Work | None, device: Device, context: Context) -> Side:
    """Return work with the seconds that it takes alone; None looks on."""
    with device.active():
        run: Run = device.repeated([work], capture=False) if work else looking_on
        outcome = measure_runs(run, context.ranks, _part_of(context.limits))
    return Side(work=work, alone=outcome.seconds, device=device, spread=outcome.spread)


def long_enough(kind: KernelClass, device: Device, ranks: Ranks) -> Work:
    """Return a kernel of a class that takes `LEAST_SECONDS` on the slowest rank, or a bit more."""
    scale = 1
    while True:
        work = made_by_all(partial(_KERNELS[kind], device, scale), ranks)
        work()
        seconds = ranks.slowest(min(device.timed(work) for _ in range(_TRIES)))
        if seconds >= LEAST_SECONDS:
            return work
        scale *= 2


def _gemm(device: Device, scale: int) -> Work:
    left, right, result = (_random(device, _EDGE * scale, _EDGE * scale) for _ in range(3))
    return lambda: torch.mm(left, right, out=result)


def _attention(device: Device, scale: int) -> Work:
    shape = (1, _HEADS, _SEQ * scale, _HEAD_DIM)
    query, key, value = (_random(device, *shape) for _ in range(3))
    return lambda: scaled_dot_product_attention(query, key, value, is_causal=True)


def _add(device: Device, scale: int) -> Work:
    """Return a sum of tensors that the last-level cache does not hold."""
    elements = scale * ceil(COLD * device.cache / _TENSORS / _dtype(device).itemsize)
    left, right, result = (_random(device, elements) for _ in range(_TENSORS))
    return lambda: torch.add(left, right, out=result)


_KERNELS: dict[KernelClass, Callable[[Device, int], Work]] = {
    KernelClass.GEMM: _gemm,
    KernelClass.ATTENTION: _attention,
    KernelClass.MEMORY_BOUND: _add,
}


def _random(device: Device, *shape: int) -> Tensor:
    return random_tensor(device, _dtype(device), *shape)


def _dtype(device: Device) -> torch.dtype:
    """Return the format that models are trained in there."""
    return torch.float32 if device.runtime is None else torch.bfloat16


def _part_of(limits: Limits) -> Limits:
    return limits.model_copy(update={"max_seconds": limits.max_seconds / _MEASUREMENTS})
