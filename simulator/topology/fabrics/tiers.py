"""How the switches of a tree are grouped and cabled, tier by tier.

A tree is a parallel-ports generalised fat tree: a group of a tier joins `joins` groups of the tier
below by `switches` switches that all do the same, and each switch below has `uplinks` cables, dealt
in turn over them. Source: Zahavi, "D-Mod-K routing providing non-blocking traffic for shift
permutations on real life fat trees" (2010), which extends the XGFT of Öhring et al. (1995).

Where a switch has fewer uplinks than there are switches above it, those are cut into planes: switch
y of a group below meets those of plane y mod `planes` only, as in the core of a k-ary tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.topology.fabrics.wiring import Cables, wire
from simulator.topology.graph import Graph, IntArray

_NAMES = ("leaf", "spine", "core")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One tier, with all that a file may leave open."""

    groups: int
    joins: int
    """Groups of the tier below, or units, that a full group joins."""
    switches: int
    """In one group."""
    planes: int = 1
    """Into which the switches of a group are cut, as seen from below."""
    mixes: int = 1
    """Rails that meet here; 1 where they stay apart or have met before."""
    uplinks: int = 0
    """Cables of one switch to the tier above; 0 at the top."""
    bandwidth: float = 0.0
    """Bytes/s of one uplink, one direction."""
    latency: float = 0.0
    """Seconds of one message on an uplink."""

    @property
    def size(self) -> int:
        """Switches in all."""
        return self.groups * self.switches


def tree_graph(tiers: Sequence[Tier], *, rails: bool = False) -> Graph:
    """Return the switches of a tree and their cables.

    Switches are numbered tier by tier from the leaves up, and in each group by group. A group's
    number and a switch's in it make its name: "leaf3", "spine1.7" (the eighth of group 1); those of
    the top tier have one number, as leaves have where there are no `rails`.
    """
    first = np.cumsum([0, *(tier.size for tier in tiers)])
    names = [name for number in range(len(tiers)) for name in _names(tiers, number, rails=rails)]
    bundles = [
        _uplinks(lower, upper, int(start), int(above))
        for lower, upper, start, above in zip(
            tiers[:-1], tiers[1:], first[:-2], first[1:-1], strict=True
        )
    ]
    return wire(names, bundles)


def leaves_of_ports(leaves: Tier, units: int, ports: int) -> IntArray:
    """Return (units, ports) the leaf of each port: port p is on rail p mod `leaves.switches`."""
    group = np.arange(units, dtype=np.intp)[:, None] // leaves.joins
    return group * leaves.switches + np.arange(ports, dtype=np.intp) % leaves.switches


def _names(tiers: Sequence[Tier], number: int, *, rails: bool) -> list[str]:
    tier, last = tiers[number], len(tiers) - 1
    name = _NAMES[number] if number < len(_NAMES) else f"tier{number}."
    if (number == 0 and not rails) or (number == last and number > 0):
        return [f"{name}{switch}" for switch in range(tier.size)]
    return [
        f"{name}{group}.{copy}" for group in range(tier.groups) for copy in range(tier.switches)
    ]


def _uplinks(lower: Tier, upper: Tier, first_lower: int, first_upper: int) -> Cables:
    """Return the cables between two tiers.

    Those of one switch go in turn over the switches of its plane, and begin where those of the
    switch before it ended, so that switches above differ by one cable at most.
    """
    switch = np.arange(lower.size, dtype=np.intp)
    group, copy = np.divmod(switch, lower.switches)
    number, rail = np.divmod(copy, upper.mixes)
    turn, plane = np.divmod(number, upper.planes)
    before = group % upper.joins * (lower.switches // upper.planes) + turn * upper.mixes + rail
    cable = before[:, None] * lower.uplinks + np.arange(lower.uplinks, dtype=np.intp)
    across = cable % (upper.switches // upper.planes) * upper.planes + plane[:, None]
    above = (group // upper.joins * upper.switches)[:, None] + across
    return Cables(
        one=np.repeat(first_lower + switch, lower.uplinks),
        other=first_upper + above,
        bandwidth=lower.bandwidth,
        latency=lower.latency,
    )
