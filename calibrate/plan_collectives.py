"""What several ranks measure in a plan: collectives by group and size, pairs, interference."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple, assert_never

from calibrate.batches import World
from calibrate.pairing import pairs_to_try
from calibrate.plan_case import Case
from calibrate.plan_groups import CollectivePlan, Members
from calibrate.points import (
    CollectivePoint,
    GroupKind,
    InterferencePoint,
    Launch,
    LaunchPoint,
    Point,
    Timing,
)
from calibrate.spread import sizes_by_factor
from simulator.parallel.groups import Collective

_ELEMENT = 4
"""Bytes of float32; sizes are whole elements on every rank."""
_BUFFERS = 2
"""What is sent and what is received."""
_FIRST = (Members.PAIR, Members.NODE, Members.ALL)
"""The smallest and the largest groups: what lies between them is interpolated."""


def collective_launch(case: Case) -> Iterator[Point]:
    """Yield the CPU time of a collective, where several ranks can have one."""
    if case.plan.launch and case.world.size > 1:
        yield LaunchPoint(launch=Launch.COLLECTIVE)


def first_collectives(case: Case) -> Iterator[CollectivePoint]:
    """Yield each operation over the smallest and the largest groups, at coarse sizes."""
    section = case.plan.collectives
    if section is not None and section.timing:
        members = [member for member in section.members if member in _FIRST]
        yield from _collectives(case, section, members, _timings(case, section.timing)[0])


def more_collectives(case: Case) -> Iterator[CollectivePoint]:
    """Yield the other groups, then the sizes in between, then the other way of timing."""
    section = case.plan.collectives
    if section is None or not section.timing:
        return
    main, *others = _timings(case, section.timing)
    rest = [member for member in section.members if member not in _FIRST]
    yield from _collectives(case, section, rest, main)
    if section.between:
        yield from _collectives(case, section, section.members, main, section.between)
    for timing in others:
        yield from _collectives(case, section, section.members, timing)


def _timings(case: Case, asked: tuple[Timing, ...]) -> list[Timing]:
    """Return how collectives are timed: what is asked for, calls alone where ranks are CPUs."""
    alone = {Timing.DEVICE: Timing.ISOLATED} if case.on_cpu else {}
    return list(dict.fromkeys(alone.get(timing, timing) for timing in asked))


def apart(case: Case) -> Iterator[CollectivePoint]:
    """Yield what two ranks exchange when each starts at its own time."""
    section, group = case.plan.apart, _group(Members.PAIR, case.world)
    if section is None or group is None:
        return
    sizes = section.cpu_bytes if case.on_cpu else section.bytes
    for operation, size in product(section.operations, sizes):
        if _BUFFERS * size <= case.room:
            yield CollectivePoint(
                collective=operation,
                ranks=group.ranks,
                nodes=group.nodes,
                bytes=_whole(size, group.ranks),
                timing=Timing.APART,
                group=group.kind,
            )


def pairs(case: Case) -> Iterator[CollectivePoint]:
    """Yield send and receive between pairs of ranks."""
    section = case.plan.pairs
    if section is None:
        return
    size = section.cpu_bytes if case.on_cpu else section.bytes
    for first, second in pairs_to_try(case.world.size, section.all_up_to):
        (timing,) = _timings(case, (Timing.DEVICE,))
        yield _pair(case.world, first, second, size, timing)


def interferences(case: Case) -> Iterator[InterferencePoint]:
    """Yield kernels beside collectives of a node, or of all where a node has one rank."""
    section, world = case.plan.interference, case.world
    ranks = world.local_size if world.local_size > 1 else world.size
    if section is None or ranks == 1:
        return
    sizes = section.cpu_bytes if case.on_cpu else section.bytes
    for size, operation, kernel in product(sizes, section.operations, section.kernels):
        if _BUFFERS * size <= case.room:
            yield InterferencePoint(
                kernel=kernel, collective=operation, ranks=ranks, bytes=_whole(size, ranks)
            )


class _Group(NamedTuple):
    """A group, or several at once, of a world."""

    kind: GroupKind
    ranks: int
    nodes: int


def _collectives(
    case: Case,
    section: CollectivePlan,
    members: list[Members] | tuple[Members, ...],
    timing: Timing,
    between: int = 0,
) -> Iterator[CollectivePoint]:
    """Yield points by operation, then group, then size: a cut leaves whole curves behind."""
    most = min(section.cpu_most if case.on_cpu else section.most, case.room / _BUFFERS)
    sizes = sizes_by_factor(section.least, most, section.factor, between)
    groups = [group for member in members if (group := _group(member, case.world)) is not None]
    for operation, group, size in product(section.operations, groups, sizes):
        if operation is not Collective.SEND_RECV:
            yield CollectivePoint(
                collective=operation,
                ranks=group.ranks,
                nodes=group.nodes,
                bytes=_whole(size, group.ranks),
                timing=timing,
                group=group.kind,
            )
        elif group.kind is GroupKind.FIRST:
            other = case.world.local_size if group.nodes > 1 else 1
            yield _pair(case.world, 0, other, size, timing)


def _group(member: Members, world: World) -> _Group | None:
    """Return the group that is meant, or None where the world does not have it."""
    local, nodes = world.local_size, world.nodes
    one_each, several = local == 1, nodes > 1
    match member:
        case Members.PAIR | Members.FOUR:
            ranks = int(member.value)
            fits = ranks <= (nodes if one_each else local)
            return _Group(GroupKind.FIRST, ranks, ranks if one_each else 1) if fits else None
        case Members.NODE:
            return None if one_each else _Group(GroupKind.FIRST, local, 1)
        case Members.ALL:
            return _Group(GroupKind.FIRST, world.size, nodes) if several else None
        case Members.ONE_A_NODE | Members.RAILS:
            kind = GroupKind(member.value)
            return None if one_each or not several else _Group(kind, nodes, nodes)
        case Members.HALVES:
            return _halves(world)
        case _:
            assert_never(member)


def _halves(world: World) -> _Group | None:
    """Return two groups that share the NICs of all nodes; of single ranks, half the nodes each."""
    half = world.size // 2
    if world.nodes > 1 and world.local_size % 2 == 0:
        return _Group(GroupKind.HALVES, half, world.nodes)
    whole = world.nodes % 2 == 0 and half > 1 and world.nodes > 1
    return _Group(GroupKind.HALVES, half, world.nodes // 2) if whole else None


def _pair(world: World, first: int, second: int, size: float, timing: Timing) -> CollectivePoint:
    same_node = first // world.local_size == second // world.local_size
    return CollectivePoint(
        collective=Collective.SEND_RECV,
        ranks=2,
        nodes=1 if same_node else 2,
        bytes=_whole(size, 1),
        timing=timing,
        group=GroupKind.PAIR,
        first=first,
        second=second,
    )


def _whole(size: float, ranks: int) -> float:
    """Return the bytes, at most `size` but for the smallest, that are whole elements a rank.

    >>> _whole(1024, 3), _whole(1024, 4), _whole(2, 4)
    (1020.0, 1024.0, 16.0)
    """
    unit = _ELEMENT * ranks
    return float(max(1, int(size) // unit) * unit)
