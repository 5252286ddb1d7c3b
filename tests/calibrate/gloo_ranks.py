"""Runs a function on several gloo ranks, each a process of this machine."""

from __future__ import annotations

import multiprocessing
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from calibrate.batches import World
from calibrate.limits import Limits

Result = TypeVar("Result")
_TIMEOUT = 90.0
"""Seconds for all ranks together; a hang is a failure, not a hung test run."""


class _Task(NamedTuple):
    """What one rank does."""

    rank: int
    size: int
    folder: Path
    work: Callable[..., object]
    arguments: tuple[object, ...]


def on_ranks(size: int, work: Callable[..., Result], folder: Path, *arguments: Any) -> list[Result]:
    """Return what `work(context, *arguments)` returns on each of `size` ranks, by rank.

    `folder` is where the ranks find each other; a fresh one a call. Forked by a server that has
    read torch once and done nothing with it: what the tests' own process keeps of meshes that it
    had would be taken for that of the ranks. The children use one thread, as OpenMP's others do not
    survive a fork.
    """
    pytest.importorskip("torch")
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(["torch", "torch.distributed"])
    pipes = [forking.Pipe(duplex=False) for _ in range(size)]
    tasks = [_Task(rank, size, folder, work, arguments) for rank in range(size)]
    processes = [
        forking.Process(target=_rank, args=(task, writer))
        for task, (_, writer) in zip(tasks, pipes, strict=True)
    ]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
            for process in processes:
                process.start()
        found = [_received(rank, reader) for rank, (reader, _) in enumerate(pipes)]
    finally:
        for process in processes:
            process.kill()
            process.join()
    # Where one rank fails others lose their peer: the first cause may be any rank's.
    if failures := [
        f"rank {rank} failed:\n{said}" for rank, (lost, said) in enumerate(found) if lost
    ]:
        raise AssertionError("\n".join(failures))
    return [value for _, value in found]


def _received(rank: int, reader: Connection) -> tuple[bool, Any]:
    """Return whether a rank has failed, and its result or its traceback."""
    if not reader.poll(_TIMEOUT):
        return True, f"it said nothing for {_TIMEOUT:g} s"
    try:
        failed, value = reader.recv()
    except EOFError:
        return True, "its process ended without a word"
    return failed, value


def _rank(task: _Task, writer: Connection) -> None:
    try:
        writer.send((False, _in_group(task)))
    except BaseException:  # the parent raises it
        writer.send((True, traceback.format_exc()))


def _in_group(task: _Task) -> object:
    torch = pytest.importorskip("torch")
    dist = torch.distributed
    from calibrate.measure_context import Context
    from calibrate.measure_ranks import TorchRanks

    torch.set_num_threads(1)
    store = dist.FileStore(str(task.folder / "store"), task.size)
    dist.init_process_group("gloo", store=store, rank=task.rank, world_size=task.size)
    context = Context(
        device=torch.device("cpu"),
        limits=Limits(block_seconds=0.002, blocks=3, max_seconds=1.0),
        world=World(size=task.size, local_size=task.size),
        ranks=TorchRanks(),
        local_rank=task.rank,
        backend="gloo",
    )
    try:
        return task.work(context, *task.arguments)
    finally:
        dist.destroy_process_group()
