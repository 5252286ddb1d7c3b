"""Which layouts fit in the accelerator's memory, and which come closest where none does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest

from simulator.api import Forecaster
from simulator.parallel.layout import ParallelLayout, Recompute, ScheduleName

LayoutKey = tuple[int, ...]

_RECOMPUTE = list(Recompute)
_SCHEDULES = list(ScheduleName)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasible:
    """Legal layouts divided by the memory that they need."""

    fitting: tuple[ParallelLayout, ...]
    too_large: int
    """Layouts that need more than the limit."""
    nearest: tuple[ParallelLayout, ...]
    """Those of them that need least, smallest first."""


def divide_by_memory(
    forecaster: Forecaster, layouts: Iterable[ParallelLayout], limit: float, keep: int
) -> Feasible:
    """Return which of `layouts` need at most `limit` bytes, and the `keep` nearest of the others.

    Memory never falls when the micro-batch grows and all else stays, so that in each family of
    layouts that differ in nothing else the first that is too large settles those above it.
    """
    families: dict[LayoutKey, list[ParallelLayout]] = {}
    for layout in layouts:
        families.setdefault(_family(layout), []).append(layout)
    fitting: list[ParallelLayout] = []
    over: list[tuple[float, LayoutKey, ParallelLayout]] = []
    too_large = 0
    for family in families.values():
        family.sort(key=lambda layout: layout.micro_batch_size)
        for position, layout in enumerate(family):
            peak = forecaster.peak_memory(layout)
            if peak > limit:
                over.append((peak, layout_key(layout), layout))
                too_large += len(family) - position
                break
            fitting.append(layout)
    nearest = tuple(layout for _, _, layout in nsmallest(keep, over))
    return Feasible(fitting=tuple(fitting), too_large=too_large, nearest=nearest)


def layout_key(layout: ParallelLayout) -> LayoutKey:
    """Return what orders layouts that are equally fast: small sizes and plain options first."""
    return (*_family(layout), layout.micro_batch_size)


def _family(layout: ParallelLayout) -> LayoutKey:
    """Return all that tells layouts of one search apart, but the micro-batch size."""
    return (
        layout.tp,
        layout.pp,
        layout.cp,
        layout.dp,
        layout.vpp,
        _SCHEDULES.index(layout.effective_schedule),
        layout.zero_stage,
        _RECOMPUTE.index(layout.recompute),
        layout.sequence_parallel,
    )
