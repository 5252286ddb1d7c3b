"""Which nodes belong together: the calls of a collective, the ends of a message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from simulator.interchange.records import NodeKind, TraceNode, Workload

At = tuple[int, int]
"""A rank, and the place of a node in its trace."""


def followers_of(nodes: Sequence[TraceNode]) -> list[list[int]]:
    """Return for each node the places of those that wait for it."""
    at = {node.number: place for place, node in enumerate(nodes)}
    found: list[list[int]] = [[] for _ in nodes]
    for place, node in enumerate(nodes):
        for before in node.after:
            found[at[before]].append(place)
    return found


def calls_of(
    workload: Workload,
) -> tuple[dict[At, tuple[int, int]], dict[int, list[list[At]]]]:
    """Return the group and the call that each collective belongs to, and the nodes of each call."""
    of: dict[At, tuple[int, int]] = {}
    calls: dict[int, list[list[At]]] = defaultdict(list)
    for rank, nodes in enumerate(workload.ranks):
        count: dict[int, int] = defaultdict(int)
        for place in sorted(range(len(nodes)), key=lambda place: nodes[place].number):
            group = nodes[place].group
            if nodes[place].kind is NodeKind.COLLECTIVE:
                call = count[group]
                count[group] += 1
                of[rank, place] = group, call
                if call == len(calls[group]):
                    calls[group].append([])
                calls[group][call].append((rank, place))
    return of, calls


def partners_of(workload: Workload) -> dict[At, At]:
    """Return the other end of each message: sends and receives of the same name in their order."""
    ends: dict[tuple[int, int, int], tuple[list[At], list[At]]]
    ends = defaultdict(lambda: ([], []))
    for rank, nodes in enumerate(workload.ranks):
        for place in sorted(range(len(nodes)), key=lambda place: nodes[place].number):
            node = nodes[place]
            if node.kind is NodeKind.SEND:
                ends[rank, node.peer, node.tag][0].append((rank, place))
            elif node.kind is NodeKind.RECEIVE:
                ends[node.peer, rank, node.tag][1].append((rank, place))
    found: dict[At, At] = {}
    for sends, receives in ends.values():
        found |= dict(zip(sends, receives, strict=True))
        found |= dict(zip(receives, sends, strict=True))
    return found
