"""All pipeline schedules; one line adds one, and `tests/simulator/schedule` checks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from simulator.errors import InputError
from simulator.files import read_text
from simulator.parallel.layout import ParallelLayout, ScheduleName
from simulator.parallel.placement import PipelineShape, Placement, pipeline_of, placement_of
from simulator.schedule.action import Schedule
from simulator.schedule.csv_file import parse_schedule
from simulator.schedule.dualpipe import dualpipe
from simulator.schedule.dualpipe_v import dualpipe_v
from simulator.schedule.gpipe import gpipe
from simulator.schedule.interleaved import interleaved
from simulator.schedule.looped_bfs import looped_bfs
from simulator.schedule.one_f_one_b import one_f_one_b
from simulator.schedule.zb_h1 import zb_h1
from simulator.schedule.zb_v import zb_v

SCHEDULES: dict[ScheduleName, Callable[[int, int, int], Schedule]] = {
    ScheduleName.GPIPE: gpipe,
    ScheduleName.ONE_F_ONE_B: one_f_one_b,
    ScheduleName.INTERLEAVED: interleaved,
    ScheduleName.LOOPED_BFS: looped_bfs,
    ScheduleName.ZERO_BUBBLE_H1: zb_h1,
    ScheduleName.ZERO_BUBBLE_V: zb_v,
    ScheduleName.DUALPIPE: dualpipe,
    ScheduleName.DUALPIPE_V: dualpipe_v,
}
"""Functions of (pp, vpp, micro-batches)."""


class ScheduleOptions(NamedTuple):
    """What some schedules depend on besides their sizes."""

    group_size: int | None = None
    """Micro-batches in a row of a chunk (interleaved)."""
    text: str | None = None
    """Of the CSV file."""
    placement: Placement | None = None
    """Of the stages in the file."""
    extra: int = 0
    """Forward passes more before the first backward pass (1f1b, interleaved)."""


PLAIN = ScheduleOptions()


def schedule_options(layout: ParallelLayout) -> ScheduleOptions:
    """Return the options that a layout gives to its schedule.

    Raises:
        InputError: its schedule file cannot be read.
    """
    text = _text(layout.schedule_file) if layout.schedule_file is not None else None
    return ScheduleOptions(
        group_size=layout.microbatch_group_size,
        text=text,
        placement=layout.placement,
        extra=layout.extra_warm_up,
    )


def _text(file: str) -> str:
    try:
        return read_text(file)
    except InputError as error:
        fix = "a CSV file, relative to the scenario's folder"
        key = "layout.schedule_file"
        raise InputError(*(replace(found, key=key, fix=fix) for found in error.problems)) from error


def pipeline_shape(
    name: ScheduleName, pp: int, vpp: int, options: ScheduleOptions = PLAIN
) -> PipelineShape:
    """Return which stage runs which place in a schedule."""
    return pipeline_of(pp, vpp, placement_of(name, options.placement))


@lru_cache(maxsize=64)
def build_schedule(
    name: ScheduleName, pp: int, vpp: int, micro_batches: int, options: ScheduleOptions = PLAIN
) -> Schedule:
    """Return the actions of every stage, in order."""
    match name:
        case ScheduleName.CSV:
            assert options.text is not None, "checked with the layout"
            return parse_schedule(options.text, pipeline_shape(name, pp, vpp, options))
        case ScheduleName.INTERLEAVED:
            return interleaved(pp, vpp, micro_batches, options.group_size, options.extra)
        case ScheduleName.ONE_F_ONE_B:
            return one_f_one_b(pp, vpp, micro_batches, options.extra)
        case _:
            return SCHEDULES[name](pp, vpp, micro_batches)
