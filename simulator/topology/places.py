"""Which accelerator each rank runs on: in blocks, round the nodes, or as a file says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.errors import InputError, Problem
from simulator.files import is_there, nearest, read_text
from simulator.topology.graph import IntArray
from simulator.topology.places_checks import Nodes
from simulator.topology.places_file import parse_places
from simulator.topology.topology import Topology

BLOCK = "block"
CYCLIC = "cyclic"
PLANE = "plane="
_PLANE = re.compile(rf"{PLANE}([1-9]\d{{0,6}})")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Where ranks run."""

    order: str
    """What was asked for: "block", "cyclic", "plane=4" or the name of a file."""
    accelerators: IntArray
    """(ranks,) the accelerator of each; all different."""
    node_size: int
    """Accelerators of a node."""

    def csv(self) -> str:
        """Return the places as a file that `places_of` reads.

        >>> print(Places(order="", accelerators=np.array([0, 9]), node_size=8).csv(), end="")
        rank,node,accelerator
        0,node0,0
        1,node1,1
        """
        node, place = np.divmod(self.accelerators, self.node_size)
        rows = zip(node.tolist(), place.tolist(), strict=True)
        lines = [f"{rank},node{node},{place}" for rank, (node, place) in enumerate(rows)]
        return "\n".join(["rank,node,accelerator", *lines]) + "\n"


def places_of(
    order: str,
    topology: Topology,
    *,
    ranks: int | None = None,
    node_size: int | None = None,
    names: Sequence[str] | None = None,
) -> Places:
    """Return the places of `ranks` ranks (None: one on each accelerator) in an order.

    "block" fills node after node (rank r on accelerator r), "cyclic" deals ranks to nodes one at a
    time (Slurm's --distribution=cyclic: rank r on node r mod nodes), "plane=N" N at a time (Slurm's
    --distribution=plane=N); a full node is passed over. Any other order is the name of a file (see
    `parse_places`). A node has `node_size` accelerators (None: those of a unit); nodes are called
    `names` (None: node0, node1, ...).

    Raises:
        InputError: no such order or file, or with all that is wrong in it.
    """
    size = node_size or topology.width
    count = topology.size if ranks is None else ranks
    nodes = Nodes(
        names=tuple(names or (f"node{number}" for number in range(topology.size // size))),
        size=size,
    )
    if count > topology.size:
        raise InputError(_too_many(count, topology.size))
    plane = _plane(order, size)
    if plane is not None:
        accelerators = _dealt(len(nodes.names), size, plane)[:count]
    elif is_there(order):
        accelerators = parse_places(read_text(order), order, count, nodes)
    else:
        raise InputError(_unknown(order))
    return Places(order=order, accelerators=accelerators, node_size=size)


def _plane(order: str, size: int) -> int | None:
    """Return how many ranks a node gets at a time; None where the order is something else."""
    if order == BLOCK:
        return size
    if order == CYCLIC:
        return 1
    match = _PLANE.fullmatch(order)
    return int(match.group(1)) if match else None


def _dealt(nodes: int, size: int, plane: int) -> IntArray:
    """Return all accelerators in the order in which ranks get them, `plane` of a node at a time.

    >>> _dealt(2, 4, 2)
    array([0, 1, 4, 5, 2, 3, 6, 7])
    """
    node, place = np.divmod(np.arange(nodes * size), size)
    return np.lexsort((place, node, place // plane)).astype(np.intp)


def _too_many(ranks: int, size: int) -> Problem:
    return Problem(
        key="rank_order",
        found=f"{ranks} ranks",
        rule=f"there are {size} accelerators, one for each rank",
        fix=f"at most {size} ranks, or more nodes",
    )


def _unknown(order: str) -> Problem:
    return Problem(
        key="rank_order",
        found=repr(order),
        rule=f'is "{BLOCK}", "{CYCLIC}", "{PLANE}N" (N ranks a node at a time) or a file',
        fix=nearest(order, [BLOCK, CYCLIC, f"{PLANE}2"]),
    )
