"""Collectives message by message: the rounds of one small group, for an event simulation.

Places are ranks domain by domain: place `k r + i` is slot i of domain k. Sizes are in bytes for
each byte of payload.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simulator.cost.collectives.pattern import Traffic, messages
from simulator.cost.collectives.recursive import Leg, Rounds, core_of
from simulator.cost.collectives.recursive_doubling import doubling_legs
from simulator.cost.collectives.recursive_halving import halving_legs
from simulator.cost.collectives.schemes import binary_parents, moved_to_other_tree
from simulator.cost.plan import LinkKind
from simulator.parallel.groups import Collective, GroupShape
from simulator.topology.graph import IntArray

_Maker = Callable[[Collective, GroupShape], Rounds]
_PIECES = 64
"""Pieces of each tree's half of the payload. NCCL's depend on its buffers; more make the trees fill
in a smaller share of the time, as `tree` takes for granted."""


def rounds_of(algorithm: str, collective: Collective, group: GroupShape) -> Rounds:
    """Return the messages of each round of a collective, between the places of a group.

    A rank starts a round when it has sent and received what it had to in the round before.
    """
    return ROUNDS[algorithm](collective, group)


def _ring_rounds(collective: Collective, group: GroupShape) -> Rounds:
    """Return one step of all rings after another: one ring, or one for each slot of a domain.

    Ring j enters each domain at slot j and leaves it at the slot before.
    """
    size, width = group.size, group.per_domain
    domain, slot = np.divmod(np.arange(size), width)
    rings = width if group.domains > 1 else 1
    orders = [domain * width + (slot + ring) % width for ring in range(rings)]
    step = Traffic.joined(
        *(messages(order, np.roll(order, -1), 1.0 / size / rings) for order in orders)
    )
    laps = 2 if collective is Collective.ALL_REDUCE else 1
    return (step,) * (laps * (size - 1))


def _pairwise_rounds(collective: Collective, group: GroupShape) -> Rounds:  # noqa: ARG001
    """Return the rounds in which each place sends to the one 1, 2, ... further on."""
    places = np.arange(group.size)
    return tuple(
        messages(places, (places + distance) % group.size, 1.0 / group.size)
        for distance in range(1, group.size)
    )


def _binomial_rounds(collective: Collective, group: GroupShape) -> Rounds:
    """Return the rounds of a broadcast, the furthest first; across domains, then in each."""
    across = [_fan_out(each, group.domains) for each in _halves(group.domains)]
    inside = [_fan_out(each, group.per_domain) for each in _halves(group.per_domain)]
    starts = np.arange(group.domains) * group.per_domain
    rounds = [messages(a * group.per_domain, b * group.per_domain, 1.0) for a, b in across]
    rounds += [
        messages((starts[:, None] + a).ravel(), (starts[:, None] + b).ravel(), 1.0)
        for a, b in inside
    ]
    if collective is Collective.REDUCE:
        return tuple(each.back for each in reversed(rounds))
    return tuple(rounds)


def _halves(count: int) -> list[int]:
    """Return the distances of the rounds of a binomial tree: ..., 4, 2, 1."""
    return [1 << bit for bit in reversed(range((count - 1).bit_length()))]


def _fan_out(distance: int, count: int) -> tuple[IntArray, IntArray]:
    source = np.arange(0, count - distance, 2 * distance)
    return source, source + distance


def _tree_rounds(collective: Collective, group: GroupShape) -> Rounds:  # noqa: ARG001
    """Return the rounds of both trees over the domains, in pieces that follow each other.

    A piece goes up from a place as soon as all its children have sent it, and down again from the
    root. Slot i of a domain sends to slot i, its share of the piece.
    """
    count, width = group.domains, group.per_domain
    child, parent = np.arange(1, count), binary_parents(count)
    heights, depths = _heights(parent), _depths(parent)
    last = int(heights[0])
    up, down = heights[1:], last + depths[parent]
    rounds = []
    for number in range(_PIECES + last + int(depths.max())):
        parts = []
        for start, edges in ((up, (child, parent)), (down, (parent, child))):
            moving = (number >= start) & (number < start + _PIECES)
            one, other = (row[moving] for row in edges)
            parts += [(one, other), tuple(moved_to_other_tree(row, count) for row in (one, other))]
        rounds.append(Traffic.joined(*(_slots(one, other, width) for one, other in parts)))
    return tuple(rounds)


def _slots(source: IntArray, target: IntArray, width: int) -> Traffic:
    slots = np.arange(width)
    return messages(
        (source[:, None] * width + slots).ravel(),
        (target[:, None] * width + slots).ravel(),
        0.5 / width / _PIECES,
    )


def _depths(parent: IntArray) -> IntArray:
    """Return the edges from each place up to the root, 0; `parent` is that of 1, 2, ..."""
    places = np.arange(len(parent) + 1)
    depth = np.zeros_like(places)
    while places.any():
        depth += places > 0
        places = np.where(places > 0, parent[places - 1], 0)
    return depth


def _heights(parent: IntArray) -> IntArray:
    """Return the edges from each place down to its furthest leaf."""
    height = np.zeros(len(parent) + 1, dtype=np.intp)
    for _ in range(len(height).bit_length()):
        np.maximum.at(height, parent, height[1:] + 1)
    return height


def _recursive_rounds(legs: Callable[[Collective, GroupShape], tuple[Leg, ...]]) -> _Maker:
    def rounds(collective: Collective, group: GroupShape) -> Rounds:
        return tuple(
            _spread(each, leg, group)
            for leg in legs(collective, group)
            for each in leg.rounds(leg.places(group))
        )

    return rounds


def _spread(each: Traffic, leg: Leg, group: GroupShape) -> Traffic:
    """Return a round of a leg between the places of all domains, or of all slots."""
    width = group.per_domain
    if leg.link is LinkKind.SCALE_UP:
        starts, stride = np.arange(group.domains) * width, 1
    else:
        starts, stride = np.arange(core_of(width)), width
    return messages(
        (starts[:, None] + each.source * stride).ravel(),
        (starts[:, None] + each.target * stride).ravel(),
        np.tile(each.weight, len(starts)),
    )


ROUNDS: dict[str, _Maker] = {
    "ring": _ring_rounds,
    "tree": _tree_rounds,
    "pairwise": _pairwise_rounds,
    "binomial": _binomial_rounds,
    "recursive_doubling": _recursive_rounds(doubling_legs),
    "recursive_halving": _recursive_rounds(halving_legs),
}
