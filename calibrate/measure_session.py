"""A worker's job with torch: the device, the process group, and then the points or the facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import torch
from torch import distributed as dist

from calibrate.crew import SLACK
from calibrate.measure_clocks import ClockWatch
from calibrate.measure_context import Context
from calibrate.measure_facts import choose_device, probe
from calibrate.measure_ranks import TorchRanks
from calibrate.measure_registry import measure
from calibrate.measure_rendezvous import connect
from calibrate.measuring import Alone, Outcome, Ranks
from calibrate.points import Point
from calibrate.work import Work, do_work
from calibrate.worker_messages import Facts, Job, Message, Ready

_CONNECT_SHARE = 0.9
"""Of the time to start, so that a worker can still say why it has not started."""


def do_job(job: Job, say: Callable[[Message], None]) -> None:
    """Do what the supervisor asks for, and say what is done. Raises what measuring raises."""
    if job.task.batch is None:
        say(Facts(facts=probe(job.task.device, _local_device(job))))
        return
    with _prepared(job) as context:
        say(Ready())
        do_work(
            Work(
                job=job,
                measure=lambda point: _watched(point, context),
                ranks=context.ranks,
                say=say,
            )
        )
        context.ranks.barrier()


def _local_device(job: Job) -> int:
    """Return which of the accelerators that this process sees is its own.

    A scheduler that gives each process one accelerator hides the others from it.
    """
    return 0 if torch.cuda.device_count() == 1 else job.local_rank


@contextmanager
def _prepared(job: Job) -> Iterator[Context]:
    """Give a context with the device and, for several workers, their process group."""
    device = choose_device(job.task.device, _local_device(job))
    if device.type == "cuda":
        torch.cuda.set_device(device)
    ranks: Ranks = Alone()
    if job.store is not None:
        _join(job, device)
        ranks = TorchRanks(_group_timeout(job))
    try:
        yield Context(
            device=device,
            limits=job.task.limits,
            world=job.world,
            ranks=ranks,
            local_rank=job.local_rank,
            backend=job.task.backend if job.store is not None else None,
        )
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def _join(job: Job, device: torch.device) -> None:
    assert job.store is not None
    dist.init_process_group(
        backend=job.task.backend,
        store=connect(job.store, _CONNECT_SHARE * job.start_limit),
        rank=job.rank,
        world_size=job.world.size,
        timeout=_group_timeout(job),
        device_id=device if device.type == "cuda" else None,
    )


def _group_timeout(job: Job) -> timedelta:
    """Return how long a collective may wait: longer than the supervisor lets any point take."""
    longest = max(job.task.expected(index) for index in job.task.todo)
    return timedelta(seconds=job.start_limit + SLACK * longest)


def _watched(point: Point, context: Context) -> Outcome:
    with ClockWatch(context.device) as watch:
        outcome = measure(point, context)
    return outcome if outcome.clocks else replace(outcome, clocks=watch.clocks())
