"""Measures a collective over some ranks: back to back, each call by itself, or started apart.

Every rank of the world calls `measure_collective` for every point; those outside the point's
groups only take part in the decisions and report 0 seconds (`Outcome.by_rank`).
"""

from __future__ import annotations

import os
from dataclasses import replace

import torch

from calibrate.group_ranks import Groups, ranks_of
from calibrate.measure_call import Call, Operation
from calibrate.measure_context import Context
from calibrate.measure_device import device_of
from calibrate.measure_loop import measure_runs
from calibrate.measure_operations import operation_of
from calibrate.measure_ranks import drop_groups, group_of, made_by_all
from calibrate.measure_timings import run_of
from calibrate.measuring import Outcome
from calibrate.nccl_choice import DebugFile
from calibrate.payloads import elements_of
from calibrate.points import CollectivePoint, GroupKind
from simulator.errors import Problem, UnsupportedError
from simulator.parallel.groups import Collective

IN_PLACE = (Collective.ALL_REDUCE, Collective.REDUCE, Collective.BROADCAST)
"""PyTorch has these in place only, and the others out of place."""


class WrongResultError(Exception):
    """A collective delivered other numbers than were sent: no time of it means anything."""


def measure_collective(point: CollectivePoint, context: Context) -> Outcome:
    """Return the seconds of one call, the slowest rank's.

    Raises:
        InputError: the world has no such group, or the bytes do not divide.
        TooLargeError: the buffers do not fit in the memory of any one rank.
        UnsupportedError: the backend or PyTorch has no such operation.
        WrongResultError: a rank received other numbers than were sent to it.
    """
    groups = ranks_of(point, context.world)
    device = device_of(context.device)
    debug = DebugFile(os.environ)
    try:
        with device.active():
            operation = prepared(point, groups, context)
            run = run_of(point.timing, operation, device, groups, context)
            outcome = measure_runs(run, context.ranks, context.limits)
    finally:
        if point.group is GroupKind.PAIR:
            drop_groups(groups, context)
    choice = debug.choice(point.collective)
    return replace(outcome, algorithm=choice.algorithm, protocol=choice.protocol)


def prepared(point: CollectivePoint, groups: Groups, context: Context) -> Operation | None:
    """Return this rank's operation, checked once on all ranks; None outside the groups.

    Raises: as `measure_collective`.
    """
    _check_place(point)
    elements = elements_of(point)
    group = group_of(groups, context)
    mine = next((ranks for ranks in groups if context.ranks.rank in ranks), None)

    def make() -> Operation | None:
        if mine is None:
            return None
        call = Call(
            group=group,
            ranks=mine,
            index=mine.index(context.ranks.rank),
            elements=elements,
            dtype=getattr(torch, point.dtype),
            device=context.device,
            one_way=point.group is GroupKind.PAIR,
        )
        return operation_of(point.collective, call)

    operation = made_by_all(make, context.ranks)
    verify(operation, point, context)
    return operation


def _check_place(point: CollectivePoint) -> None:
    there = point.collective in IN_PLACE
    if point.in_place is not None and point.in_place is not there:
        rule = f"PyTorch runs {point.collective} {'in' if there else 'out of'} place only"
        found = str(point.in_place).lower()
        fix = f"use {str(there).lower()}, or leave it out"
        raise UnsupportedError(
            Problem(where="point", key="in_place", found=found, rule=rule, fix=fix)
        )


def verify(operation: Operation | None, point: CollectivePoint, context: Context) -> None:
    """Raise on every rank where one of them received wrong numbers."""
    try:
        correct = operation is None or operation.is_correct()
    except (RuntimeError, NotImplementedError) as error:
        if not _is_missing(error):
            raise
        rule = (
            f"{context.backend} has no {point.collective} of {point.dtype} on {context.device.type}"
        )
        raise UnsupportedError(
            Problem(where="point", rule=rule, found=_first_line(error))
        ) from error
    wrong = [
        rank for rank, said in enumerate(context.ranks.gather(0.0 if correct else 1.0)) if said
    ]
    if wrong:
        who = ", ".join(map(str, wrong))
        raise WrongResultError(f"{point.collective} delivered wrong numbers to rank {who}")


def _is_missing(error: Exception) -> bool:
    """Return whether an error says that a backend does not have an operation."""
    words = ("not support", "unsupported", "not implemented", "no backend")
    return isinstance(error, NotImplementedError) or any(w in str(error).lower() for w in words)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
