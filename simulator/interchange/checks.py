"""What must be true of the traces of all ranks together before they can be replayed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from simulator.errors import InputError, Problem
from simulator.interchange.records import EVERY_RANK, NodeKind, RankTrace, TraceNode, Workload

_SHOWN = 20
"""Problems that are shown of many: a wrong converter makes one for each node."""


def check_workload(workload: Workload) -> None:
    """Raise `InputError` unless every rank can come to its end.

    Dependencies exist and form no cycle, groups are known and hold the rank, all ranks of a group
    do the same collectives in the same order, and every message has a sender and a receiver.
    """
    problems: list[Problem] = []
    for rank, nodes in enumerate(workload.ranks):
        problems += _wrong_order(workload, rank, nodes)
        problems += _wrong_groups(workload, rank, nodes)
    problems = problems or [*_unequal_calls(workload), *_lonely_messages(workload)]
    if problems:
        raise InputError(*few(problems))


def few(problems: Sequence[Problem]) -> list[Problem]:
    """Return the first problems, and how many more there are."""
    more = len(problems) - _SHOWN
    if more <= 0:
        return list(problems)
    return [*problems[:_SHOWN], Problem(where=problems[-1].where, rule=f"and {more} more")]


def _wrong_order(workload: Workload, rank: int, nodes: RankTrace) -> Iterator[Problem]:
    known, seen, backwards = {node.number for node in nodes}, set[int](), False
    for node in nodes:
        for other in node.after:
            if other not in known:
                key = _key(rank, node, "deps")
                rule = "must be a node of the same rank"
                yield Problem(where=workload.where, key=key, rule=rule, found=str(other))
            backwards = backwards or other not in seen
        seen.add(node.number)
    # Nodes that only wait for what stands before them form no circle.
    if backwards:
        yield from _circle(workload, rank, nodes)


def _circle(workload: Workload, rank: int, nodes: RankTrace) -> Iterator[Problem]:
    graph = TopologicalSorter({node.number: node.after for node in nodes})
    try:
        graph.prepare()
    except CycleError as error:
        cycle = " -> ".join(map(str, error.args[1][:8]))
        rule = "nodes must not wait for each other in a circle"
        yield Problem(where=workload.where, key=f"rank {rank}", found=cycle, rule=rule)


def _wrong_groups(workload: Workload, rank: int, nodes: RankTrace) -> Iterator[Problem]:
    where = workload.where
    for node in nodes:
        if node.kind is NodeKind.COLLECTIVE and node.group != EVERY_RANK:
            ranks, key = workload.groups.get(node.group), _key(rank, node, "pg_name")
            if ranks is None:
                rule, fix = "must be a known group", "add it to comm_groups.json"
                yield Problem(where=where, key=key, rule=rule, found=str(node.group), fix=fix)
            elif rank not in ranks:
                rule = f"must be a group of rank {rank}"
                found = f"{node.group}: {ranks}"
                yield Problem(where=where, key=key, rule=rule, found=found[:60])
        if node.kind in (NodeKind.SEND, NodeKind.RECEIVE):
            last = len(workload.ranks) - 1
            if not 0 <= node.peer <= last or node.peer == rank:
                rule = f"must be another rank from 0 to {last}"
                key = _key(rank, node, "peer")
                yield Problem(where=where, key=key, rule=rule, found=str(node.peer))


def _unequal_calls(workload: Workload) -> Iterator[Problem]:
    """Yield the first call of each group that not all of its ranks make."""
    calls: dict[int, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for rank, nodes in enumerate(workload.ranks):
        for node in nodes:
            if node.collective is not None:
                calls[node.group][rank].append(node.collective.value)
    for group, by_rank in calls.items():
        ranks = workload.members(group)
        for call in range(max(map(len, by_rank.values()))):
            found = [by_rank[rank][call : call + 1] or ["nothing"] for rank in ranks]
            if len({name for (name,) in found}) > 1:
                shown = ", ".join(f"rank {r} {f[0]}" for r, f in zip(ranks, found, strict=True))
                rule = "all ranks of a group must do the same collectives in the same order"
                key = f"group {group}, call {call + 1}"
                yield Problem(where=workload.where, key=key, rule=rule, found=shown[:120])
                break


def _lonely_messages(workload: Workload) -> Iterator[Problem]:
    sent: Counter[tuple[int, int, int]] = Counter()
    for rank, nodes in enumerate(workload.ranks):
        for node in nodes:
            if node.kind is NodeKind.SEND:
                sent[rank, node.peer, node.tag] += 1
            elif node.kind is NodeKind.RECEIVE:
                sent[node.peer, rank, node.tag] -= 1
    for (source, target, tag), excess in sent.items():
        if excess:
            key = f"from rank {source} to rank {target}, tag {tag}"
            found = f"{abs(excess)} more {'sends' if excess > 0 else 'receives'}"
            rule = "every message must be sent once and received once"
            yield Problem(where=workload.where, key=key, rule=rule, found=found)


def _key(rank: int, node: TraceNode, key: str) -> str:
    return f"rank {rank}, node {node.number} ({node.name}).{key}"
