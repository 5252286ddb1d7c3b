"""The ranks of a process group: what they share while they measure, and the groups they form."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import distributed as dist

from calibrate.group_ranks import Groups
from calibrate.measure_context import Context
from calibrate.measure_device import is_out_of_memory
from calibrate.measuring import Ranks, TooLargeError

Made = TypeVar("Made")
CONTROL = "gloo"
"""Backend of the values that ranks share: on the CPU, so that it stays off the accelerators'
links where the measured backend is another one."""


class TorchRanks:
    """All ranks of the default process group, which share values over a group of their own."""

    def __init__(self, timeout: timedelta | None = None) -> None:
        self._group: Any = dist.new_group(backend=CONTROL, timeout=timeout)
        self._rank, self._size = dist.get_rank(), dist.get_world_size()

    @property
    def rank(self) -> int:
        """This process."""
        return self._rank

    @property
    def size(self) -> int:
        """All of them."""
        return self._size

    def slowest(self, seconds: float) -> float:
        """Return the largest value that any rank gave; the same on all."""
        value = torch.tensor([seconds], dtype=torch.float64)
        dist.all_reduce(value, op=dist.ReduceOp.MAX, group=self._group)
        return float(value)

    def gather(self, seconds: float) -> tuple[float, ...]:
        """Return what every rank gave, by rank; the same on all."""
        mine = torch.tensor([seconds], dtype=torch.float64)
        values = [torch.empty_like(mine) for _ in range(self._size)]
        dist.all_gather(values, mine, group=self._group)
        return tuple(float(value) for value in values)

    def barrier(self) -> None:
        """Return when all ranks have come here."""
        dist.barrier(group=self._group)


def group_of(groups: Groups, context: Context) -> Any:
    """Return the process group of this rank among `groups`, or None where it is in none of them.

    Every rank must call this with the same groups in the same order, as all make all of them
    together; they are kept in the context for points to come.
    """
    if groups not in context.groups:
        context.groups[groups] = _made(groups, context)
    return context.groups[groups]


def drop_groups(groups: Groups, context: Context) -> None:
    """Forget groups that no later point has, and free what their communicators hold."""
    mine = context.groups.pop(groups, None)
    if mine is not None and mine is not dist.group.WORLD:
        dist.destroy_process_group(mine)


def made_by_all(make: Callable[[], Made], ranks: Ranks) -> Made:
    """Return what `make`, which must not communicate, returns here once it has on every rank.

    Raises:
        TooLargeError: it ran out of memory on any rank; all ranks raise it.
        RuntimeError: it failed on another rank; the one where it failed raises its own error.
    """
    made: Made | None = None
    failure: Exception | None = None
    try:
        made = make()
    except Exception as error:  # whatever it is, the other ranks must hear of it
        failure = error
    worst = ranks.slowest(_severity(failure))
    if worst == _severity(None):
        return made  # type: ignore[return-value]
    if worst == _TOO_LARGE:
        raise TooLargeError(str(failure) if failure else "another rank ran out of memory")
    raise failure or RuntimeError("another rank failed to prepare this point")


_TOO_LARGE, _FAILED = 1.0, 2.0


def _severity(error: Exception | None) -> float:
    if error is None:
        return 0.0
    too_large = isinstance(error, TooLargeError) or is_out_of_memory(error)
    return _TOO_LARGE if too_large else _FAILED


def _made(groups: Groups, context: Context) -> Any:
    if groups == (tuple(range(context.world.size)),):
        return dist.group.WORLD
    lists = [list(group) for group in groups]
    make: Any = dist.new_subgroups_by_enumeration
    mine, _ = make(lists, backend=context.backend)
    return mine
