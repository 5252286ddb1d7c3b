"""Which ranks share a scale-up domain, and so what shape a process group has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from simulator.parallel.groups import GroupShape

IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class PlacedDomains:
    """Domains of ranks that stand elsewhere than one after another."""

    of_rank: IntArray
    """(world,) number of the scale-up domain of each rank."""

    def fewest_together(self, size: int, stride: int) -> int:
        """Return the members of such groups that share a domain, where they are fewest."""
        return _fewest_together(self, size, stride)


Domains = int | PlacedDomains
"""How many consecutive ranks share a domain, or which ranks do."""


def group_shape(size: int, stride: int, domains: Domains) -> GroupShape:
    """Return the shape of a group whose members are `stride` ranks apart.

    Where members do not spread evenly the largest even spread below is taken; of groups that lie
    differently, the one that is spread furthest.

    >>> group_shape(16, 2, 8)
    GroupShape(size=16, per_domain=4)
    >>> cyclic = PlacedDomains(np.arange(16) % 4)
    >>> group_shape(4, 1, cyclic)
    GroupShape(size=4, per_domain=1)
    >>> group_shape(4, 4, cyclic)
    GroupShape(size=4, per_domain=4)
    """
    if isinstance(domains, int):
        fit = max(1, min(size, domains // stride))
    else:
        fit = domains.fewest_together(size, stride)
    per_domain = next(n for n in range(fit, 0, -1) if size % n == 0)
    return GroupShape(size=size, per_domain=per_domain, stride=stride)


def members(world: IntArray, size: int, stride: int) -> IntArray:
    """Return (groups, size) the ranks of all groups whose members are `stride` apart.

    `world` holds the ranks they are made of, a multiple of size x stride.

    >>> members(np.arange(8), 2, 2)
    array([[0, 2],
           [1, 3],
           [4, 6],
           [5, 7]])
    """
    return world.reshape(-1, size, stride).swapaxes(1, 2).reshape(-1, size)


@cache
def _fewest_together(domains: PlacedDomains, size: int, stride: int) -> int:
    """Return the fewest members that any domain which a group touches holds of it."""
    found = np.sort(domains.of_rank[members(np.arange(len(domains.of_rank)), size, stride)], axis=1)
    starts = np.ones_like(found, dtype=bool)
    starts[:, 1:] = found[:, 1:] != found[:, :-1]
    lengths = np.diff(np.append(np.flatnonzero(starts), found.size))
    return int(lengths.min())
