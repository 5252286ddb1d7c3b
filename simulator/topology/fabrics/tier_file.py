"""The tiers of a tree of switches, as a file gives them."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from simulator.files import FileRecord
from simulator.topology.fabrics.fabric_file import Count, FabricFile
from simulator.units import Bandwidth, Seconds

MAX_TIERS = 8
"""More than any tree of switches that has been built."""
_LEAST_RATIO = 1e-3
"""A thousand times what the hosts need: below it no switch has the uplinks."""
_UPWARD = ("joins", "uplinks", "oversubscription", "bandwidth")
"""Keys that say how a tier goes on above."""


class TierFile(FileRecord):
    """One tier of switches. What is left out follows from `radix`, or is as simple as can be."""

    joins: Count | None = None
    """What one group of switches of this tier joins: units, in the lowest tier; groups of the tier
    below, in the others. As many as `radix` allows where it is left out. The top tier joins all."""
    switches: Count | None = None
    """In one group. With `radix` and `joins` (or at the top) as few as will do; else one for each
    uplink of a switch below. The lowest tier has one leaf a group (rail-optimised: one a rail)."""
    radix: Count | None = None
    """Ports of one switch, up and down together."""
    uplinks: Count | None = None
    """Cables of one switch to the tier above."""
    oversubscription: float | None = Field(default=None, ge=_LEAST_RATIO)
    """Bandwidth into one switch from below over its bandwidth to the tier above, all below being
    there; 1 where neither it nor `uplinks` is given."""
    bandwidth: Bandwidth | None = None
    """Nominal, of one uplink and direction; that of a NIC by default."""
    latency: Seconds = 0.0
    """Of one message on an uplink, besides the NIC's, which is that of the whole way."""

    @model_validator(mode="after")
    def _one_ratio(self) -> Self:
        if self.uplinks is not None and self.oversubscription is not None:
            raise ValueError(
                "give uplinks or oversubscription, not both: one follows from the other"
            )
        return self


class TreeFile(FabricFile):
    """A tree of switches."""

    tiers: tuple[TierFile, ...] = Field(min_length=1, max_length=MAX_TIERS)
    """From the leaves up; the last one joins all."""

    @model_validator(mode="after")
    def _ends_fit(self) -> Self:
        top, leaf = self.tiers[-1], self.tiers[0]
        given = [key for key in _UPWARD if getattr(top, key) is not None]
        if given:
            raise ValueError(
                "the last of the tiers joins all and has nothing above it: "
                f"leave out {', '.join(given)}"
            )
        if leaf.switches is not None:
            raise ValueError("the first of the tiers has one leaf a group: leave out switches")
        return self
