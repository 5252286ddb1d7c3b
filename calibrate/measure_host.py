"""Measures what the CPU spends on launches, and what lasting load does to the device's speed."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter

import torch
from torch import distributed as dist
from torch.utils.benchmark import Timer

from calibrate.measure_context import Context
from calibrate.measure_device import Device, Repeated, device_of
from calibrate.measure_loop import Run, measure_runs
from calibrate.measure_tensors import random_tensor, torch_dtype
from calibrate.measuring import Outcome, Ranks
from calibrate.points import Launch, LaunchPoint, SoakPoint
from simulator.errors import Problem, UnsupportedError
from simulator.units import MS

_PENDING = 32
"""Collectives launched before they are waited for: queues of libraries are longer."""
_SOAK_RUN = 10 * MS
"""Least duration of the product of a soak: no launch shows in it."""
_LARGEST_SOAK = 8192
_SMALLEST_SOAK = 512
"""Rows and columns of the matrices of a soak."""
_SOAK_BLOCK = 0.25
"""Seconds of soak that are timed together."""
_ENDS = 0.1
"""Share of a soak's blocks that its first and its last time are medians of."""


def measure_launch(point: LaunchPoint, context: Context) -> Outcome:
    """Return the CPU seconds of one launch.

    A kernel: an addition of one element that autograd records, many in a row, so that the device
    waits for the CPU. A collective: until an all-reduce of one element has been handed over.

    Raises:
        UnsupportedError: a collective without a process group.
    """
    device = device_of(context.device)
    with device.active():
        run = _kernels(device) if point.launch is Launch.KERNEL else _collectives(device)
        return measure_runs(run, context.ranks, context.limits)


def measure_soak(point: SoakPoint, context: Context) -> Outcome:
    """Return the seconds of a large product at the end of `duration` seconds of it.

    `values`: FLOP/s at the end, and the seconds of a run in the first and the last tenth.
    """
    device = device_of(context.device)
    with device.active(), torch.no_grad():
        product = _product(point, device, context.ranks)
        times = _load(product.run, point.duration, context.ranks)
    count = max(1, round(_ENDS * len(times)))
    last = times[-max(count, min(len(times), 4)) :]
    quarters = quantiles(last, n=4, method="inclusive") if len(last) > 1 else [last[0]] * 3
    seconds = median(last)
    return Outcome(
        seconds=seconds,
        spread=(quarters[2] - quarters[0]) / seconds,
        samples=len(last),
        values={
            "flops": product.flops / seconds,
            "first_seconds": median(times[:count]),
            "last_seconds": seconds,
        },
    )


def _kernels(device: Device) -> Run:
    """Return what launches the smallest kernels; the timer of `torch.utils.benchmark` fits here.

    It loops in compiled code, so that no time of the loop itself is counted, and waits once.
    """
    one = torch.ones(1, device=device.torch_device, requires_grad=True)
    timer = Timer("torch.add(one, one)", globals={"torch": torch, "one": one})
    return lambda runs: float(timer.timeit(runs).mean) * runs


def _collectives(device: Device) -> Run:
    if not dist.is_initialized():
        rule = "a collective needs a process group"
        fix = "start several ranks with torchrun, srun or `traincast calibrate launch --local 2`"
        raise UnsupportedError(Problem(where="point", key="launch", rule=rule, fix=fix))
    tensors = [torch.ones(1, device=device.torch_device) for _ in range(_PENDING)]

    def run(runs: int) -> float:
        elapsed = 0.0
        for start in range(0, runs, _PENDING):
            chosen = tensors[: min(_PENDING, runs - start)]
            begin = perf_counter()
            handles = [dist.all_reduce(tensor, async_op=True) for tensor in chosen]
            elapsed += perf_counter() - begin
            for handle in handles:
                handle.wait()
            device.synchronize()
        return elapsed

    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class _Product:
    """A square product that is long enough."""

    run: Repeated
    flops: float


def _product(point: SoakPoint, device: Device, ranks: Ranks) -> _Product:
    """Return a square product of at least `_SOAK_RUN`, or the largest."""
    size = _SMALLEST_SOAK
    while True:
        run = _square(size, point, device)
        run(1)
        if ranks.slowest(run(1)) >= _SOAK_RUN or size >= _LARGEST_SOAK:
            return _Product(run=run, flops=2.0 * size**3)
        size *= 2


def _square(size: int, point: SoakPoint, device: Device) -> Repeated:
    left, right = (random_tensor(device, torch_dtype(point.dtype), size, size) for _ in range(2))
    result = torch.empty_like(left)
    return device.repeated([lambda: torch.mm(left, right, out=result)], capture=False)


def _load(run: Run, duration: float, ranks: Ranks) -> list[float]:
    """Return the seconds of a run, block by block, until `duration` seconds are over."""
    one = ranks.slowest(run(1))
    times = [one]
    elapsed = one
    while elapsed < duration:
        runs = max(1, round(_SOAK_BLOCK / times[-1]))
        times.append(ranks.slowest(run(runs) / runs))
        elapsed += times[-1] * runs
    return times
