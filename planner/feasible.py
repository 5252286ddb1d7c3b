"""Which layouts fit in the accelerator's memory, and which come closest where none does."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from planner.axes import Choice
from planner.crew import hands
from planner.division import Fit, Path, by_size, divided, families
from planner.space import Branch, Space
from simulator.api import Forecaster
from simulator.parallel.layout import (
    ContextExchange,
    ParallelLayout,
    Recompute,
    RecomputeModule,
    ScheduleName,
)

LayoutKey = tuple[float, ...]

_SHARED = 5_000
"""Legal layouts from which on processes share a division; starting one takes 0.05 s."""
_RECOMPUTE = list(Recompute)
_SCHEDULES = list(ScheduleName)
_EXCHANGES = list(ContextExchange)
_MODULES = list(RecomputeModule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasible:
    """Legal layouts divided by the memory that they need."""

    fits: tuple[Fit, ...]
    too_large: int
    """Layouts that need more than the limit."""
    nearest: tuple[ParallelLayout, ...]
    """Where nothing fits: the layouts that need least, smallest first."""
    balanced: int = 0
    """Of those that fit, the last so many are legal ones of a mixed cluster with other layers a
    stage."""

    @property
    def fitting(self) -> tuple[ParallelLayout, ...]:
        """The layouts that fit."""
        return tuple(fit.layout for fit in self.fits)


def divide_by_memory(
    forecaster: Forecaster, space: Space, limit: float, keep: int, *, processes: int | None = None
) -> Feasible:
    """Return which layouts of a space need at most `limit` bytes; if none does, the `keep` nearest.

    Memory never falls when the micro-batch grows and all else stays, so that in each family of
    layouts that differ in nothing else the first that is too large settles those above it. What the
    states alone make too large is settled with all that is chosen behind them.

    `processes` share the work, None for as many as pay; the answer is the same with any number.
    """
    if processes is None:
        processes = hands() if space.legal >= _SHARED else 1
    fits = tuple(divided(forecaster, space, limit, processes))
    return Feasible(
        fits=fits,
        too_large=space.legal - len(fits),
        nearest=() if fits else _nearest(forecaster, _smallest(space), keep),
    )


def _smallest(space: Space) -> Iterator[ParallelLayout]:
    """Yield of each family the layout of the smallest micro-batch."""
    for fields, sizes in chain.from_iterable(map(families, space.meshes)):
        seen: set[Path] = set()
        for choice, behind in by_size(sizes):
            for chosen, path in _paths(fields | choice, behind, ()):
                if path not in seen:
                    seen.add(path)
                    yield ParallelLayout.of_checked(chosen)


def _paths(fields: Choice, branch: Branch, path: Path) -> Iterator[tuple[Choice, Path]]:
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
