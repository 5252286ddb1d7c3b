"""Dividing the layouts of a space by memory, in this process or in several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from planner.axes import AXES, Choice
from planner.bound import quick_bound
from planner.crew import in_shares
from planner.space import Branch, Space, plain_fields
from simulator.api import Forecaster
from simulator.parallel.layout import ParallelLayout

_SIZES = AXES.index(("micro_batch_size",))
"""The axis of micro-batch sizes."""
_STATES = AXES.index(("zero_stage",)) + 1
"""The first axis behind all that decide weights, gradients and states; of the last one, what of the
optimizer is on the host decides them too."""
Path = tuple[int, ...]
"""Which choices behind the micro-batch size lead to a branch, by their ids."""
_Found = list[tuple[float, Choice]]
"""Seconds at least and fields of the layouts of one mesh that fit."""


class Fit(NamedTuple):
    """A layout that fits, with the seconds that its step takes at least (`quick_bound`)."""

    least: float
    layout: ParallelLayout


def fits_of(forecaster: Forecaster, layouts: Iterable[ParallelLayout]) -> tuple[Fit, ...]:
    """Return layouts that are known to fit, with what their steps take at least."""
    return tuple(Fit(quick_bound(forecaster, layout), layout) for layout in layouts)


def divided(forecaster: Forecaster, space: Space, limit: float, processes: int) -> Iterator[Fit]:
    """Yield the layouts that fit in the order of the space, whoever has divided them."""

    def divide(meshes: Sequence[Branch]) -> list[_Found]:
        return [_Division(forecaster, limit).of_mesh(mesh) for mesh in meshes]

    shares = _shares(space.meshes, processes)
    found = {
        id(mesh): fits
        for share, done in zip(shares, in_shares(divide, shares), strict=True)
        for mesh, fits in zip(share, done, strict=True)
    }
    for mesh in space.meshes:
        for least, fields in found[id(mesh)]:
            yield Fit(least, ParallelLayout.of_checked(fields))


def _shares(meshes: Sequence[Branch], count: int) -> list[list[Branch]]:
    """Return meshes in at most `count` shares of about as many layouts.

    Those of one tp stay together: what their passes run is computed once for all of them.
    """
    together: dict[int, list[Branch]] = {}
    for mesh in meshes:
        (choice, _), *_ = mesh.open
        together.setdefault(choice["tp"], []).append(mesh)
    shares: list[list[Branch]] = [[] for _ in range(min(count, len(together)))]
    for group in sorted(together.values(), key=_legal, reverse=True):
        min(shares, key=_legal).extend(group)
    return shares


def _legal(meshes: Sequence[Branch]) -> int:
    return sum(mesh.legal for mesh in meshes)


class _Division:
    """Owns what the division of one mesh has found."""

    def __init__(self, forecaster: Forecaster, limit: float) -> None:
        self.forecaster, self.limit = forecaster, limit
        self.found: _Found = []
        self.too_large: set[Path] = set()
        self._least_states: dict[tuple[object, ...], float] = {}

    def of_mesh(self, mesh: Branch) -> _Found:
        """Return the layouts of a mesh that fit."""
        for fields, sizes in families(mesh):
            self.divide(fields, sizes)
        return self.found

    def divide(self, fields: Choice, sizes: Branch) -> None:
        """Divide the layouts of families that are equal in `fields`, the smallest first."""
        self.too_large.clear()
        for choice, behind in by_size(sizes):
            self._walk(_SIZES + 1, fields | choice, behind, ())

    def _walk(self, axis: int, fields: Choice, branch: Branch, path: Path) -> None:
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
                    self.found.append((quick_bound(self.forecaster, layout), chosen))
                else:
                    self.too_large.add(here)
            elif axis + 1 == _STATES and self._states(chosen, here, behind) > self.limit:
                self.too_large.add(here)
            else:
                self._walk(axis + 1, chosen, behind, here)

    def _fits(self, layout: ParallelLayout) -> bool:
        """Return whether a layout needs at most `limit` bytes, and has a host for what it offloads.

        Neither falls when the micro-batch grows.
        """
        cast = self.forecaster
        return cast.peak_memory(layout) <= self.limit and cast.fits_host(layout)

    def _states(self, fields: Choice, path: Path, behind: Branch) -> float:
        """Return bytes of states that layouts need at least, whatever is chosen behind them.

        Of what is chosen before the pipeline only the mesh and the experts' ranks matter.
        """
        key = (fields["ep"], fields["etp"], path, id(behind))
        found = self._least_states.get(key)
        if found is None:
            chosen = {
                host["optimizer_offload"]: fields | saver | host
                for saver, hosts in behind.open
                for host, _ in hosts.open
            }
            layouts = map(ParallelLayout.of_checked, chosen.values())
            found = self._least_states[key] = min(map(self.forecaster.state_memory, layouts))
        return found


def families(mesh: Branch) -> Iterator[tuple[Choice, Branch]]:
    """Yield what is chosen before the micro-batch size, with what is open from there on."""
    return _open_at(_SIZES, 0, plain_fields(), mesh)


def _open_at(
    axis: int, here: int, fields: Choice, branch: Branch
) -> Iterator[tuple[Choice, Branch]]:
    if here == axis:
        yield fields, branch
        return
    for choice, behind in branch.open:
        yield from _open_at(axis, here + 1, fields | choice, behind)


def by_size(sizes: Branch) -> list[tuple[Choice, Branch]]:
    """Return the choices of micro-batch sizes, rising, with what is open behind each."""
    return sorted(sizes.open, key=lambda each: each[0]["micro_batch_size"])
