"""A rail-optimised tree: in each pod of units, one leaf for each rail."""

from __future__ import annotations

from enum import StrEnum
from typing import Self, assert_never

import numpy as np
from pydantic import model_validator

from simulator.errors import InputError, Problem
from simulator.topology.context import Context
from simulator.topology.fabrics.fabric_file import Count, finish, link_efficiency
from simulator.topology.fabrics.settle import settle
from simulator.topology.fabrics.tier_file import TreeFile
from simulator.topology.fabrics.tiers import leaves_of_ports, tree_graph
from simulator.topology.fabrics.wish import Below
from simulator.topology.ports import plug
from simulator.topology.topology import Fabric, Unit


class RailsMeet(StrEnum):
    """Where the rails of a fabric meet."""

    SPINE = "spine"
    """In the tier above the leaves: every leaf of a pod reaches every spine."""
    TOP = "top"
    """In the top tier: below it each rail has spines of its own (rail groups)."""
    NEVER = "never"
    """Rail-only: a message to another rail needs a relay in its unit. Source: Wang et al.,
    "Rail-only: a low-cost high-performance network for training LLMs", arXiv:2307.12169."""


class RailOptimisedFile(TreeFile):
    """A rail-optimised tree: port p of a unit is on rail p mod `rails`, and on that rail's leaf.

    `joins` of the lowest tier counts the units of a pod. Units fill pod after pod: the last has
    those that remain, and all its uplinks.
    """

    rails: Count | None = None
    """NICs of a node by default; ports of a unit, where these are no multiple of it."""
    rails_meet: RailsMeet = RailsMeet.SPINE
    """Tier in which a message can change to another rail."""

    @model_validator(mode="after")
    def _somewhere_to_meet(self) -> Self:
        if len(self.tiers) == 1 and self.rails_meet is not RailsMeet.NEVER:
            raise ValueError(
                "leaves of different rails meet in a tier above them: add one, "
                'or write rails_meet = "never"'
            )
        return self

    @property
    def meeting_tier(self) -> int | None:
        """Number of the tier where rails meet; None where they never do."""
        match self.rails_meet:
            case RailsMeet.SPINE:
                return 1
            case RailsMeet.TOP:
                return len(self.tiers) - 1
            case RailsMeet.NEVER:
                return None
            case _:
                assert_never(self.rails_meet)


def rail_optimised(file: RailOptimisedFile, units: int, unit: Unit, context: Context) -> Fabric:
    """Return a tree over the rails of units.

    Raises:
        InputError: rails do not divide the ports, or a tier cannot be as the file asks.
    """
    ports = len(unit.ports)
    rails = _rails(file, ports, context)
    efficiency = link_efficiency(unit, context)
    bandwidth, _ = plug(unit, 1, context)
    below = Below(
        groups=units,
        switches=rails,
        uplinks=ports // rails,
        bandwidth=_of_each_port(bandwidth[0], rails) / efficiency,
        apart=rails,
    )
    tiers = settle(file.tiers, below, file.meeting_tier, context, efficiency)
    attachment = leaves_of_ports(tiers[0], units, ports)
    return finish(file, tree_graph(tiers, rails=True), attachment, unit, context)


def _rails(file: RailOptimisedFile, ports: int, context: Context) -> int:
    by_default = context.nics if context.nics and ports % context.nics == 0 else ports
    rails = file.rails or by_default
    if ports % rails:
        divisors = [count for count in range(1, ports + 1) if ports % count == 0]
        raise InputError(
            Problem(
                key="fabric.rails",
                found=str(rails),
                rule=f"each rail has as many of a unit's {ports} ports",
                fix=f"rails = {min(divisors, key=lambda count: abs(count - rails))}",
            )
        )
    return rails


def _of_each_port(bandwidth: np.ndarray, rails: int) -> float:
    """Return bytes/s of a port, the mean over those of one rail."""
    means = bandwidth.reshape(-1, rails).mean(axis=0)
    if not np.allclose(means, means[0]):
        raise InputError(
            Problem(
                key="unit",
                found=f"ports of {means.min():g} to {means.max():g} bytes/s on average",
                rule="each rail of a rail-optimised fabric is as fast as the others",
                fix='take kind = "graph" and write its switches and cables',
            )
        )
    return float(means[0])
