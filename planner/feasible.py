"""Which layouts fit in the accelerator's memory, and which come closest where none does."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from planner.axes import AXES, Choice
from planner.space import Branch, Space, plain_fields
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
_SIZES = AXES.index(("micro_batch_size",))
"""The axis of micro-batch sizes."""
_STATES = AXES.index(("zero_stage",)) + 1
"""The first axis behind all that decide weights, gradients and states; of the last one, what of the
optimizer is on the host decides them too."""
_Path = tuple[int, ...]
"""Which choices behind the micro-batch size lead to a branch, by their ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasible:
    """Legal layouts divided by the memory that they need."""

    fitting: tuple[ParallelLayout, ...]
    too_large: int
    """Layouts that need more than the limit."""
    nearest: tuple[ParallelLayout, ...]
    """Where nothing fits: the layouts that need least, smallest first."""
    balanced: int = 0
    """Of those that fit, so many are legal ones of a mixed cluster with other layers a stage."""


def divide_by_memory(forecaster: Forecaster, space: Space, limit: float, keep: int) -> Feasible:
    """Return which layouts of a space need at most `limit` bytes; if none does, the `keep` nearest.

    Memory never falls when the micro-batch grows and all else stays, so that in each family of
    layouts that differ in nothing else the first that is too large settles those above it. What the
    states alone make too large is settled with all that is chosen behind them.
    """
    division = _Division(forecaster, limit)
    for fields, sizes in _families(space):
        division.divide(fields, sizes)
    fitting = tuple(division.fitting)
    return Feasible(
        fitting=fitting,
        too_large=space.legal - len(fitting),
        nearest=() if fitting else _nearest(forecaster, _smallest(space), keep),
    )


class _Division:
    """Owns what one division has found."""

    def __init__(self, forecaster: Forecaster, limit: float) -> None:
        self.forecaster, self.limit = forecaster, limit
        self.fitting: list[ParallelLayout] = []
        self.too_large: set[_Path] = set()

    def divide(self, fields: Choice, sizes: Branch) -> None:
        """Divide the layouts of families that are equal in `fields`, the smallest first."""
        self.too_large.clear()
        for choice, behind in _by_size(sizes):
            self._walk(_SIZES + 1, fields | choice, behind, ())

    def _walk(self, axis: int, fields: Choice, branch: Branch, path: _Path) -> None:
        """Settle what is open in a branch whose states fit."""
        last = axis == len(AXES) - 1
        for choice, behind in branch.open:
            here = (*path, id(choice))
            if here in self.too_large:
                continue
            chosen = fields | choice
            if last:
                layout = ParallelLayout.of_checked(chosen)
                if self._fits(layout):
                    self.fitting.append(layout)
                else:
                    self.too_large.add(here)
            elif axis + 1 == _STATES and self._states(chosen, behind) > self.limit:
                self.too_large.add(here)
            else:
                self._walk(axis + 1, chosen, behind, here)

    def _fits(self, layout: ParallelLayout) -> bool:
        """Return whether a layout needs at most `limit` bytes, and has a host for what it offloads.

        Neither falls when the micro-batch grows.
        """
        cast = self.forecaster
        return cast.peak_memory(layout) <= self.limit and cast.fits_host(layout)

    def _states(self, fields: Choice, behind: Branch) -> float:
        """Return bytes of states that layouts need at least, whatever is chosen behind them."""
        chosen = {
            host["optimizer_offload"]: fields | saver | host
            for saver, hosts in behind.open
            for host, _ in hosts.open
        }
        return min(
            self.forecaster.state_memory(ParallelLayout.of_checked(each))
            for each in chosen.values()
        )


def _families(space: Space) -> Iterator[tuple[Choice, Branch]]:
    """Yield what is chosen before the micro-batch size, with what is open from there on."""
    plain = plain_fields()
    for mesh in space.meshes:
        yield from _open_at(_SIZES, 0, plain, mesh)


def _open_at(
    axis: int, here: int, fields: Choice, branch: Branch
) -> Iterator[tuple[Choice, Branch]]:
    if here == axis:
        yield fields, branch
        return
    for choice, behind in branch.open:
        yield from _open_at(axis, here + 1, fields | choice, behind)


def _by_size(sizes: Branch) -> list[tuple[Choice, Branch]]:
    return sorted(sizes.open, key=lambda each: each[0]["micro_batch_size"])


def _smallest(space: Space) -> Iterator[ParallelLayout]:
    """Yield of each family the layout of the smallest micro-batch."""
    for fields, sizes in _families(space):
        seen: set[_Path] = set()
        for choice, behind in _by_size(sizes):
            for chosen, path in _paths(fields | choice, behind, ()):
                if path not in seen:
                    seen.add(path)
                    yield ParallelLayout.of_checked(chosen)


def _paths(fields: Choice, branch: Branch, path: _Path) -> Iterator[tuple[Choice, _Path]]:
    if not branch.open:
        yield fields, path
    for choice, behind in branch.open:
        yield from _paths(fields | choice, behind, (*path, id(choice)))


def _nearest(
    forecaster: Forecaster, layouts: Iterable[ParallelLayout], keep: int
) -> tuple[ParallelLayout, ...]:
    """Return the `keep` layouts of least peak memory, looking first where the states are small."""
    best: list[tuple[float, LayoutKey, ParallelLayout]] = []
    by_states = [(forecaster.state_memory(layout), layout) for layout in layouts]
    for states, layout in sorted(by_states, key=lambda each: each[0]):
        if len(best) == keep and states > best[-1][0]:
            break
        insort(best, (forecaster.peak_memory(layout), layout_key(layout), layout))
        del best[keep:]
    return tuple(layout for _, _, layout in best)


def layout_key(layout: ParallelLayout) -> LayoutKey:
    """Return what orders layouts that are equally fast: small sizes and plain options first."""
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
        layout.micro_batch_size,
        *(layout.layers_per_stage or ()),
    )
