"""Which ranks of a world a collective point is measured on."""

from __future__ import annotations

from typing import assert_never

from calibrate.batches import World
from calibrate.points import CollectivePoint, GroupKind
from simulator.errors import InputError, Problem

Groups = tuple[tuple[int, ...], ...]
"""Rank lists that do not overlap; all of them are at work at the same time."""


def ranks_of(point: CollectivePoint, world: World) -> Groups:
    """Return the groups of a point, each in the order of its ranks; a pair's sender comes first.

    Halves that span all nodes of a world have half of every node; halves of fewer nodes have
    their own nodes.

    >>> from simulator.parallel.groups import Collective
    >>> world = World(size=4, local_size=2)
    >>> point = CollectivePoint(collective=Collective.ALL_REDUCE, ranks=2, nodes=2, bytes=8)
    >>> ranks_of(point.model_copy(update={"group": GroupKind.RAILS}), world)
    ((0, 2), (1, 3))

    Raises:
        InputError: the world has no such group, or the point says other numbers of it.
    """
    match point.group:
        case GroupKind.FIRST:
            groups = _first(point, world)
        case GroupKind.ONE_A_NODE:
            groups = (tuple(range(0, world.size, world.local_size))[: point.ranks],)
        case GroupKind.HALVES:
            groups = _halves(point, world)
        case GroupKind.RAILS:
            groups = tuple(
                tuple(range(local, world.size, world.local_size))
                for local in range(world.local_size)
            )
        case GroupKind.PAIR:
            groups = (_pair(point, world),)
        case _:
            assert_never(point.group)
    return _as_said(groups, point, world)


def nodes_of(ranks: tuple[int, ...], world: World) -> int:
    """Return how many nodes a group spans.

    >>> nodes_of((0, 1, 4), World(size=8, local_size=4))
    2
    """
    return len({rank // world.local_size for rank in ranks})


def _first(point: CollectivePoint, world: World) -> Groups:
    local = world.local_size
    if point.ranks > local and point.ranks % local:
        rule = f"a group of several nodes needs whole nodes of {local} ranks"
        raise _wrong("ranks", point.ranks, rule, f"use {point.ranks // local * local}")
    return (tuple(range(min(point.ranks, world.size))),)


def _halves(point: CollectivePoint, world: World) -> Groups:
    """Return both halves: by local rank where each is to touch all nodes, else by node."""
    ranks = range(world.size)
    if point.nodes == world.nodes:
        low = tuple(r for r in ranks if r % world.local_size < world.local_size // 2)
    else:
        low = tuple(ranks[: world.size // 2])
    if 2 * len(low) != world.size:
        rule = f"{world.size} ranks in nodes of {world.local_size} have no halves of this kind"
        raise _wrong("nodes", point.nodes, rule, "use an even number of ranks or nodes")
    return low, tuple(r for r in ranks if r not in low)


def _pair(point: CollectivePoint, world: World) -> tuple[int, ...]:
    pair = tuple(rank for rank in (point.first, point.second) if rank is not None)
    if len(set(pair)) != 2 or not all(0 <= rank < world.size for rank in pair):  # noqa: PLR2004
        rule = f"a pair needs two different ranks from 0 to {world.size - 1}"
        raise _wrong("first, second", (point.first, point.second), rule, "")
    return pair


def _as_said(groups: Groups, point: CollectivePoint, world: World) -> Groups:
    """Return the groups if their ranks and nodes are those that the point names."""
    size = len(groups[0])
    if size != point.ranks:
        where = f"{world.size} ranks on {world.nodes} node(s)"
        rule = f"a group {point.group.value!r} of {where} has {size} ranks"
        raise _wrong("ranks", point.ranks, rule, f"use {size}")
    nodes = nodes_of(groups[0], world)
    if nodes != point.nodes:
        rule = f"the group's {size} ranks are on {nodes} node(s)"
        raise _wrong("nodes", point.nodes, rule, f"use {nodes}")
    return groups


def _wrong(key: str, found: object, rule: str, fix: str) -> InputError:
    return InputError(Problem(where="point", key=key, found=str(found), rule=rule, fix=fix))
