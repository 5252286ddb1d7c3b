"""The shapes in which messages go between numbered places: rings, chains, trees, all pairs."""

from __future__ import annotations

import numpy as np

from simulator.cost.collectives.pattern import NOTHING, Traffic, messages
from simulator.topology.graph import IntArray


def ring_scheme(count: int) -> Traffic:
    """Return a message of 1 from each place to the next, and from the last to the first."""
    places = np.arange(count)
    return messages(places, (places + 1) % count, 1.0) if count > 1 else NOTHING


def chain_scheme(count: int) -> Traffic:
    """Return a message of 1 from each place to the next."""
    places = np.arange(count - 1)
    return messages(places, places + 1, 1.0)


def pairs_scheme(count: int) -> Traffic:
    """Return a message of 1 from each place to every other."""
    source, target = np.divmod(np.arange(count * count), count)
    apart = source != target
    return messages(source[apart], target[apart], 1.0)


def fan_scheme(count: int) -> Traffic:
    """Return a message of 1 from each place but the first to the first."""
    places = np.arange(1, count)
    return messages(places, np.zeros_like(places), 1.0)


def binomial_scheme(count: int) -> Traffic:
    """Return a message of 1 along each edge of the binomial tree, from the root at 0 outward.

    The parent of a place is the place without its lowest bit: the root sends to 1, 2, 4, ...

    Source: MPICH src/mpi/coll/bcast/bcast_intra_binomial.c.
    """
    places = np.arange(1, count)
    return messages(places & (places - 1), places, 1.0)


def double_tree_scheme(count: int) -> Traffic:
    """Return a message of 1 up and one down each edge of two binary trees.

    In the second tree places are mirrored (an even number of them) or moved on by one (odd), so
    that inner places of one tree are leaves of the other.

    Source: NCCL 2.18 src/graph/trees.cc (ncclGetBtree, ncclGetDtree).
    """
    child, parent = np.arange(1, count), binary_parents(count)
    other_child, other_parent = (moved_to_other_tree(row, count) for row in (child, parent))
    up = Traffic.joined(messages(child, parent, 1.0), messages(other_child, other_parent, 1.0))
    return Traffic.joined(up, up.back)


def flood_scheme(count: int) -> Traffic:
    """Return a message of 1 along each edge of gloo's tree: `r + 2^i` is a child where `2^i > r`.

    The parent of a place is the place without its highest bit.
    """
    places = np.arange(1, count)
    highest = 1 << (np.frexp(places)[1].astype(np.intp) - 1)
    return messages(places - highest, places, 1.0)


def binary_parents(count: int) -> IntArray:
    """Return the parent of places 1, 2, ... in NCCL's binary tree, whose root is 0."""
    child = np.arange(1, count)
    bit = child & -child
    parent = (child ^ bit) | (bit << 1)
    return np.where(parent < count, parent, child ^ bit)


def moved_to_other_tree(places: IntArray, count: int) -> IntArray:
    """Return where the places of the first tree stand in the second."""
    return count - 1 - places if count % 2 == 0 else (places + 1) % count
