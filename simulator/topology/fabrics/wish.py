"""What is asked of one tier of a tree, and the numbers that are tried for what is left open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil, floor

from simulator.topology.fabrics.fabric_file import MAX_COUNT
from simulator.topology.fabrics.tier_file import TierFile

_SAME = 1e-9
"""Relative difference of two rates that is only the rounding of floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Below:
    """What a tier joins."""

    groups: int
    switches: int
    """In one group; of a unit, its rails."""
    uplinks: int
    """Of one switch; of a unit, its ports on one rail."""
    bandwidth: float
    """Nominal, of one of these, bytes/s, one direction."""
    apart: int
    """Rails that have not met; 1 in a tree without rails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked of one tier."""

    file: TierFile
    below: Below
    leaf: bool
    top: bool
    keep: int
    """Rails that stay apart above this tier's switches; 1 where none do."""
    mixes: int
    bandwidth: float
    """Nominal, of one uplink, bytes/s."""
    key: str

    @property
    def ways(self) -> int:
        """The most planes into which the tier can be cut: switches of a group below, told apart."""
        return self.below.switches // self.mixes

    def down(self, joins: int, switches: int) -> int:
        """Return the most cables from below into one switch of a full group."""
        return ceil(joins * self.below.switches * self.below.uplinks / switches)

    def ratio(self, joins: int, switches: int, uplinks: float) -> float:
        """Return the oversubscription: bandwidth into a full group over bandwidth out of it."""
        inside = joins * self.below.switches * self.below.uplinks * self.below.bandwidth
        return inside / (switches * uplinks * self.bandwidth)

    def uplinks(self, joins: int, switches: int) -> float:
        """Return the cables up that a switch needs; no whole number where it cannot be as asked."""
        if self.top:
            return 0
        if self.file.uplinks is not None:
            return self.file.uplinks
        wanted = self.file.oversubscription or 1.0
        exact = self.ratio(joins, switches, 1.0) / wanted
        return round(exact) if abs(exact - round(exact)) <= _SAME * exact else exact

    def fits(self, joins: int, switches: int) -> bool:
        """Return whether it can be so: enough ports, and whole cables to all switches above."""
        up = self.uplinks(joins, switches)
        whole = up == floor(up) and (self.top or up > 0)
        return whole and self.has_ports(joins, switches) and self.planes(switches) is not None

    def has_ports(self, joins: int, switches: int) -> bool:
        """Return whether a switch has the ports, its cables up rounded to more."""
        used = self.down(joins, switches) + ceil(self.uplinks(joins, switches))
        return self.file.radix is None or used <= self.file.radix

    def planes(self, switches: int) -> int | None:
        """Return the fewest planes for so many switches; None where no number of them will do."""
        for planes in range(self.keep, self.ways + 1, self.keep):
            even = switches % planes == 0 and self.ways % planes == 0
            if even and switches <= planes * self.below.uplinks:
                return planes
        return None


def tries(wish: Wish) -> Iterator[tuple[int, int]]:
    """Yield numbers of switches in a group, and of groups that it joins: the best first."""
    for switches in _switches(wish):
        for joins in _joins(wish, switches):
            yield switches, joins


def _switches(wish: Wish) -> Iterable[int]:
    """Return the numbers of switches of a group to try, the best first."""
    least, most = wish.keep, min(wish.ways * wish.below.uplinks, MAX_COUNT)
    if wish.leaf:
        return (wish.keep,)
    if wish.file.switches is not None:
        return (wish.file.switches,)
    if wish.file.radix is None:
        return (least * wish.below.uplinks,)
    if wish.file.joins is None and not wish.top:
        return (most,)
    return range(least, most + 1, least)


def _joins(wish: Wish, switches: int) -> Iterable[int]:
    """Return the numbers of groups below to try, the best first."""
    if wish.top:
        return (wish.below.groups,)
    if wish.file.joins is not None:
        return (wish.file.joins,)
    if wish.file.radix is None:
        return ()
    most = wish.file.radix * switches // (wish.below.switches * wish.below.uplinks)
    return range(most, 0, -1)
