"""The NICs of a unit: which accelerator uses which, and how they are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
from pydantic import Field

from simulator.errors import InputError, Problem
from simulator.topology.context import Context, known
from simulator.topology.graph import Cable, DeviceKind, FloatArray, IntArray

Card = Annotated[int, Field(ge=0)]
"""Number of a NIC in its node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """Ports of a unit; one port is several cards where an accelerator has more than one."""

    names: tuple[str, ...] = ()
    count: tuple[float, ...] = ()
    """(ports,) cards that a port is."""
    affinity: tuple[int, ...] = ()
    """(accelerators,) the port that each accelerator uses by itself."""

    @property
    def devices(self) -> list[tuple[str, DeviceKind]]:
        """The ports as devices."""
        return [(name, DeviceKind.NIC) for name in self.names]

    def cables(self, accelerators: Sequence[str], bandwidth: float) -> list[Cable]:
        """Return the cable from each accelerator to its port: PCIe of `bandwidth` bytes/s."""
        return [
            Cable(one=accelerator, other=self.names[port], bandwidth=bandwidth)
            for accelerator, port in zip(accelerators, self.affinity, strict=False)
        ]

    def bandwidth(self, context: Context) -> FloatArray:
        """Return bytes/s of each port that large messages achieve, one direction."""
        if not self.names:
            return np.zeros(0)
        return np.array(self.count) * known(None, context.nic_rate, "nic.bandwidth")

    def places(self, before: int) -> IntArray:
        """Return the numbers of the ports where `before` devices come first."""
        return np.arange(before, before + len(self.names))


def cards(accelerators: int, affinity: tuple[int, ...] | None, context: Context) -> Cards:
    """Return the NICs of a unit of so many accelerators: of all its nodes, or its share of one.

    `affinity` names the NIC of each accelerator of a node; None spreads them in order. Where a node
    has more NICs than accelerators, those of one accelerator are one port; where the unit's share
    of a node's NICs is no whole number, the share is one port.

    >>> cards(8, None, Context(accelerators=4, nics=2)).affinity
    (0, 0, 1, 1, 2, 2, 3, 3)
    >>> cards(2, None, Context(accelerators=2, nics=8)).names
    ('nic0-3', 'nic4-7')

    Raises:
        InputError: `affinity` does not fit the node.
    """
    if context.nics is None:
        return Cards()
    node = context.accelerators or accelerators
    size = accelerators if accelerators % node else node
    share = context.nics * size / node
    if affinity is not None:
        _check_affinity(affinity, size, int(share))
    ports, own = _of_node(size, share, affinity)
    nodes = range(accelerators // size)
    return Cards(
        names=tuple(_name(place * int(share) + first, n) for place in nodes for first, n in ports),
        count=tuple(n for _ in nodes for _, n in ports),
        affinity=tuple(place * len(ports) + port for place in nodes for port in own),
    )


def _of_node(
    size: int, share: float, affinity: tuple[int, ...] | None
) -> tuple[list[tuple[int, float]], list[int]]:
    """Return the first card of each port and how many it is, and each accelerator's port."""
    if not share.is_integer():
        return [(0, share)], [0] * size
    whole = int(share)
    if affinity is not None:
        return [(card, 1.0) for card in range(whole)], list(affinity)
    if whole <= size:
        return [(card, 1.0) for card in range(whole)], [own * whole // size for own in range(size)]
    bounds = [own * whole // size for own in range(size + 1)]
    ports = [(first, float(last - first)) for first, last in pairwise(bounds)]
    return ports, list(range(size))


def _name(first: int, count: float) -> str:
    return f"nic{first}-{first + int(count) - 1}" if count > 1 else f"nic{first}"


def _check_affinity(affinity: tuple[int, ...], size: int, nics: int) -> None:
    problems = [
        Problem(
            key=f"unit.affinity[{place}]",
            found=str(card),
            rule=f"a node has NICs 0 to {nics - 1}",
            fix=f"take one of them, {nics - 1} for the last",
        )
        for place, card in enumerate(affinity)
        if card >= nics
    ]
    if len(affinity) != size:
        problems.append(
            Problem(
                key="unit.affinity",
                found=f"{len(affinity)} entries",
                rule=f"has the NIC of each of the {size} accelerators of a node",
                fix="give one number for each, or leave the list out",
            )
        )
    if problems:
        raise InputError(*problems)
