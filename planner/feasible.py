"""Which layouts fit in the accelerator's memory, and which come closest where none does."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from simulator.api import Forecaster
from simulator.parallel.layout import (
    ContextExchange,
    ParallelLayout,
    Recompute,
    RecomputeModule,
    ScheduleName,
)

LayoutKey = tuple[float, ...]

_RECOMPUTE = list(Recompute)
_SCHEDULES = list(ScheduleName)
_EXCHANGES = list(ContextExchange)
_MODULES = list(RecomputeModule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasible:
    """Legal layouts divided by the memory that they need."""

    fitting: tuple[ParallelLayout, ...]
    too_large: int
    """Layouts that need more than the limit."""
    nearest: tuple[ParallelLayout, ...]
    """Where nothing fits: the layouts that need least, smallest first."""


def divide_by_memory(
    forecaster: Forecaster, layouts: Iterable[ParallelLayout], limit: float, keep: int
) -> Feasible:
    """Return which of `layouts` need at most `limit` bytes; if none does, the `keep` nearest.

    Memory never falls when the micro-batch grows and all else stays, so that in each family of
    layouts that differ in nothing else the first that is too large settles those above it.
    """
    families: dict[LayoutKey, list[ParallelLayout]] = {}
    for layout in layouts:
        families.setdefault(_family(layout), []).append(layout)
    memory = _Memory(forecaster)
    fitting: list[ParallelLayout] = []
    for family in families.values():
        family.sort(key=lambda layout: layout.micro_batch_size)
        if memory.states(family[0]) <= limit:
            fitting += takewhile(lambda layout: memory.fits(layout, limit), family)
    return Feasible(
        fitting=tuple(fitting),
        too_large=sum(map(len, families.values())) - len(fitting),
        nearest=() if fitting else _nearest([f[0] for f in families.values()], memory, keep),
    )


class _Memory:
    """Remembers what layouts have in common: the bytes of their weights and states."""

    def __init__(self, forecaster: Forecaster) -> None:
        self.peak = forecaster.peak_memory
        self._states = forecaster.state_memory
        self._fits_host = forecaster.fits_host
        self._found: dict[LayoutKey, float] = {}

    def fits(self, layout: ParallelLayout, limit: float) -> bool:
        """Return whether a layout needs at most `limit` bytes, and has a host for what it offloads.

        Neither falls when the micro-batch grows.
        """
        return self.peak(layout) <= limit and self._fits_host(layout)

    def states(self, layout: ParallelLayout) -> float:
        """Return bytes that a layout needs at least, equal for all that cut the model alike."""
        key = _states_key(layout)
        if key not in self._found:
            self._found[key] = self._states(layout)
        return self._found[key]


def _nearest(
    layouts: list[ParallelLayout], memory: _Memory, keep: int
) -> tuple[ParallelLayout, ...]:
    """Return the `keep` layouts of least peak memory, looking first where the states are small."""
    best: list[tuple[float, LayoutKey, ParallelLayout]] = []
    for layout in sorted(layouts, key=memory.states):
        if len(best) == keep and memory.states(layout) > best[-1][0]:
            break
        insort(best, (memory.peak(layout), layout_key(layout), layout))
        del best[keep:]
    return tuple(layout for _, _, layout in best)


def layout_key(layout: ParallelLayout) -> LayoutKey:
    """Return what orders layouts that are equally fast: small sizes and plain options first."""
    return (*_family(layout), layout.micro_batch_size)


def _family(layout: ParallelLayout) -> LayoutKey:
    """Return all that tells layouts of one search apart, but the micro-batch size."""
    return (
        *_states_key(layout),
        _RECOMPUTE.index(layout.recompute),
        len(layout.recompute_modules),
        *map(_MODULES.index, layout.recompute_modules),
        layout.recompute_num_layers or 0,
        layout.sequence_parallel,
        _EXCHANGES.index(layout.cp_comm_type),
        layout.cp_inner or 0,
        layout.microbatch_group_size or 0,
        layout.extra_warm_up,
        layout.offload_layers,
    )


def _states_key(layout: ParallelLayout) -> LayoutKey:
    """Return all that decides the bytes of weights, gradients and optimizer states."""
    return (
        layout.tp,
        layout.pp,
        layout.cp,
        layout.dp,
        layout.ep,
        layout.expert_tp,
        layout.vpp,
        _SCHEDULES.index(layout.effective_schedule),
        layout.zero_stage,
        layout.optimizer_offload,
    )
