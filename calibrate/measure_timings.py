"""The ways to time a collective: back to back, each call by itself, or started apart."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, assert_never

import torch
from torch import distributed as dist

from calibrate.group_ranks import Groups
from calibrate.measure_apart import MOST_CALLS, Apart
from calibrate.measure_call import Operation
from calibrate.measure_context import Context
from calibrate.measure_device import Device
from calibrate.measure_loop import Run
from calibrate.points import Timing


def run_of(
    timing: Timing, operation: Operation | None, device: Device, groups: Groups, context: Context
) -> Run:
    """Return what times the operation in one of the ways."""
    match timing:
        case Timing.DEVICE:
            return _back_to_back(operation, device, groups, context)
        case Timing.ISOLATED:
            return _isolated(operation, device, groups, context)
        case Timing.APART:
            return _apart(operation, device, groups, context)
        case _:
            assert_never(timing)


def _back_to_back(operation: Operation | None, device: Device, _: Groups, context: Context) -> Run:
    """Return what makes many calls in a row, from a graph where all ranks can capture one."""
    repeated = device.repeated([operation.run]) if operation else None
    if context.ranks.slowest(float(repeated is not None and repeated.graph is None)) and operation:
        repeated = device.repeated([operation.run], capture=False)
    return repeated or looking_on


def _isolated(operation: Operation | None, device: Device, groups: Groups, context: Context) -> Run:
    """Return what times each call by itself behind a barrier of its group.

    On an accelerator the barrier is queued on the stream right in front of the call, so that the
    ranks' launches do not show.
    """
    if operation is None:
        return looking_on
    barrier = _barrier(device, context.groups[groups])

    def run(runs: int) -> float:
        times = []
        for _ in range(min(runs, MOST_CALLS)):
            barrier()
            times.append(device.timed(operation.run))
        return median(times) * runs

    return run


def _apart(operation: Operation | None, device: Device, groups: Groups, context: Context) -> Run:
    """Return what times calls that ranks start apart, behind a barrier of their group.

    Each waits on its CPU, so that on an accelerator the launch is part of the time.
    """
    size = len(groups[0])
    if operation is None:
        return Apart(ranks=context.ranks, size=size)
    barrier = _barrier(device, context.groups[groups])

    def meet() -> None:
        barrier()
        device.synchronize()

    index = next(each.index(context.ranks.rank) for each in groups if context.ranks.rank in each)
    call = partial(device.timed, operation.run)
    return Apart(ranks=context.ranks, size=size, index=index, meet=meet, call=call)


def _barrier(device: Device, group: Any) -> Callable[[], object]:
    if device.runtime is None:
        return lambda: dist.barrier(group=group)
    one = torch.zeros(1, device=device.torch_device)
    return lambda: dist.all_reduce(one, group=group)


def looking_on(_: int) -> float:
    """Return the seconds of a rank that takes no part."""
    return 0.0
