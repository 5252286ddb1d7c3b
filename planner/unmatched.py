"""Entries of `search.forbid` that no layout of a search matches: likely misspelt by their user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from planner.axes import AXES, Choice, Mesh, depths, options, tensor_sizes
from planner.space import plain_fields
from simulator.parallel.forbidden import ForbiddenLayout, value_of
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario

_SHOWN = 12
"""Values of one key that a warning lists."""


def unmatched_notes(scenarios: Sequence[Scenario]) -> tuple[str, ...]:
    """Return a warning for each entry that forbids nothing, with the values that exist.

    `scenarios` are those of one search table, over all its jobs and clusters. Choices at the axes
    of one tp x pp x cp x dp are independent of each other, so that an entry matches a layout, be it
    legal or not, exactly where each axis that it names has a choice that matches.
    """
    entries = scenarios[0].file.search.forbid
    if not entries:
        return ()
    open_entries = dict(enumerate(entries))
    for mesh in _meshes(scenarios):
        matched = [number for number, entry in open_entries.items() if mesh.has(entry)]
        for number in matched:
            del open_entries[number]
        if not open_entries:
            return ()
    return tuple(
        f"search.forbid.{number}: {entry} forbids nothing: {_why(entry, scenarios)}"
        for number, entry in open_entries.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choices:
    """The choices behind one tp x pp x cp x dp, which is the first of them."""

    axes: tuple[tuple[ParallelLayout, ...], ...]
    """For each of `AXES` its choices, as layouts that are plain elsewhere."""

    def values(self, key: str) -> set[Any]:
        """Return the values of a key."""
        return {value_of(layout, key) for layout in self.axes[_axis(key)]}

    def has(self, entry: ForbiddenLayout) -> bool:
        """Return whether a layout matches."""
        wanted: dict[int, Choice] = {}
        for key, value in entry.given.items():
            wanted.setdefault(_axis(key), {})[key] = value
        return all(
            any(ForbiddenLayout(**part).matches(layout) for layout in self.axes[axis])
            for axis, part in wanted.items()
        )


def _axis(key: str) -> int:
    return next(number for number, fields in enumerate(AXES) if key in fields)


def _meshes(scenarios: Sequence[Scenario]) -> Iterator[_Choices]:
    """Yield the choices of all tp x pp x cp that leave a whole dp."""
    for scenario in scenarios:
        sizes = tensor_sizes(scenario), depths(scenario), scenario.file.search.cp
        for tp, pp, cp in product(*sizes):
            dp, rest = divmod(scenario.world_size, tp * pp * cp)
            if not rest:
                yield _choices(scenario, Mesh(tp=tp, pp=pp, cp=cp, dp=dp))


def _choices(scenario: Scenario, mesh: Mesh) -> _Choices:
    own = plain_fields() | mesh.choice()
    axes: list[list[Choice]] = [[{}], *options(scenario, mesh)]
    return _Choices(
        axes=tuple(
            tuple(ParallelLayout.of_checked(own | choice) for choice in choices) for choices in axes
        )
    )


def _why(entry: ForbiddenLayout, scenarios: Sequence[Scenario]) -> str:
    """Return which of an entry's values are of no layout, with those that are."""
    known: dict[str, set[Any]] = {key: set() for key in entry.given}
    for mesh in _meshes(scenarios):
        for key in known:
            known[key] |= mesh.values(key)
    strange = [key for key, value in entry.given.items() if value not in known[key]]
    if not strange:
        return "layouts of this search have each of these values, and none has them together"
    return "; ".join(f"{key} of this search: {_listed(known[key])}" for key in strange)


def _listed(values: set[Any]) -> str:
    words = [str(value).lower() for value in sorted(values)]
    more = [f"and {len(words) - _SHOWN} more"] if len(words) > _SHOWN else []
    return ", ".join(words[:_SHOWN] + more)
