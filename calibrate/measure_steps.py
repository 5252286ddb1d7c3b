"""Whole training steps, run for real, each from a barrier to the end of its slowest rank."""

from __future__ import annotations

from time import perf_counter

import torch

from calibrate.measure_context import Context
from calibrate.measure_loop import measure_runs
from calibrate.measure_parallel import run_step, spread_model
from calibrate.measuring import Outcome
from calibrate.points import StepPoint


def measure_step(point: StepPoint, context: Context) -> Outcome:
    """Return the seconds of one training step, and the peak memory of the fullest rank.

    Raises:
        UnsupportedError: plain PyTorch cannot run the layout, or the model has a part that is not
            built here.
    """
    device, ranks = context.device, context.ranks
    spread = spread_model(point, context)
    step = run_step(spread)
    cuda = device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats(device)

    def run(count: int) -> float:
        total = 0.0
        for _ in range(count):
            ranks.barrier()
            start = perf_counter()
            step()
            if cuda:
                torch.cuda.synchronize(device)
            total += perf_counter() - start
        return total

    outcome = measure_runs(run, ranks, context.limits)
    values = {"tokens": float(point.job.tokens_per_step)}
    if cuda:
        values |= {
            "peak_allocated": ranks.slowest(float(torch.cuda.max_memory_allocated(device))),
            "peak_reserved": ranks.slowest(float(torch.cuda.max_memory_reserved(device))),
        }
    return Outcome(
        seconds=outcome.seconds,
        spread=outcome.spread,
        samples=outcome.samples,
        outliers=outcome.outliers,
        by_rank=outcome.by_rank,
        values=values,
    )
