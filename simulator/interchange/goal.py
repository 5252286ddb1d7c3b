"""A step as a GOAL schedule, the input of LogGOPSim: calc, send and recv with what each requires.

Source: LogGOPSim, src/LogGOPSim/txt2bin.re (the grammar); Hoefler et al. 2009, "Group Operation
Assembly Language".
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from simulator.cost.collectives.select import CollectiveCosts
from simulator.errors import InputError, Problem
from simulator.interchange.goal_rounds import Round, expands, rounds_of_members
from simulator.interchange.prices import group_of
from simulator.interchange.records import NodeKind, TraceNode, Workload, payload_of

OPERATIONS_LIMIT = 2_000_000
"""Operations of all ranks that are written: a line each, and one more for what each requires."""
_COMPUTE, _NETWORK, _HOST = 0, 1, 2
"""LogGOPSim's "cpu": what runs on different ones overlaps."""
_NANOSECONDS = 1e9


@dataclass(slots=True)
class _Rank:
    """The lines of one rank so far."""

    lines: list[str] = field(default_factory=list)
    operations: int = 0

    def add(self, operation: str, after: Iterable[str]) -> str:
        """Append an operation that requires others; return its label."""
        self.operations += 1
        label = f"l{self.operations}"
        self.lines.append(f"{label}: {operation}")
        self.lines += (f"{label} requires {other}" for other in sorted(set(after)))
        return label


class GoalWriter:
    """Writes one workload; owns the tags, which tell its collectives apart."""

    def __init__(self, workload: Workload, collectives: CollectiveCosts, domain_size: int) -> None:
        self.workload, self.collectives = workload, collectives
        self.domain_size = domain_size
        self.substitutes: set[str] = set()
        self._tags: dict[tuple[object, ...], int] = {}
        self._rounds: dict[tuple[object, ...], tuple[tuple[Round, ...], ...]] = {}

    def text(self) -> str:
        """Return the schedule.

        Raises:
            InputError: more than `OPERATIONS_LIMIT` operations.
        """
        body, operations = list[str](), 0
        for rank in range(len(self.workload.ranks)):
            made = self._rank(rank)
            operations += made.operations
            self._check(operations, rank)
            body += [f"rank {rank} {{", *made.lines, "}", ""]
        head = [f"num_ranks {len(self.workload.ranks)}", ""]
        return "\n".join([*head, *body])

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not as it was: algorithms whose messages are those of another. After `text`."""
        return tuple(
            f"{name} is written as the messages of another algorithm"
            for name in sorted(self.substitutes)
        )

    def _check(self, operations: int, rank: int) -> None:
        if operations > OPERATIONS_LIMIT:
            problem = Problem(
                where=self.workload.where,
                found=f"{operations} operations up to rank {rank}",
                rule=f"a GOAL schedule of at most {OPERATIONS_LIMIT} operations is written",
                fix="fewer ranks or micro-batches; a Chakra trace has one node a collective",
            )
            raise InputError(problem)

    def _rank(self, rank: int) -> _Rank:
        made, ends = _Rank(), dict[int, tuple[str, ...]]()
        calls: dict[int, int] = {}
        for node in self.workload.ranks[rank]:
            after = [label for number in node.after for label in ends[number]]
            call = calls.get(node.group, 0)
            if node.kind is NodeKind.COLLECTIVE:
                calls[node.group] = call + 1
            ends[node.number] = tuple(self._node(made, rank, node, call, after))
        return made

    def _node(
        self, made: _Rank, rank: int, node: TraceNode, call: int, after: list[str]
    ) -> list[str]:
        """Append the operations of a node; return the labels of those that end it."""
        match node.kind:
            case NodeKind.SEND:
                tag = self._tag(rank, node.peer, node.tag)
                return [made.add(_message("send", node.size, node.peer, tag), after)]
            case NodeKind.RECEIVE:
                tag = self._tag(node.peer, rank, node.tag)
                return [made.add(_message("recv", node.size, node.peer, tag), after)]
            case NodeKind.COLLECTIVE:
                tag = self._tag("collective", node.group, call)
                return self._expanded(made, rank, node, tag, after)
            case NodeKind.COMPUTE | NodeKind.LOAD | NodeKind.STORE | NodeKind.NOTHING:
                where = _COMPUTE if node.kind is NodeKind.COMPUTE else _HOST
                calc = f"calc {round(node.seconds * _NANOSECONDS)} cpu {where}"
                return [made.add(calc, after)]

    def _expanded(
        self, made: _Rank, rank: int, node: TraceNode, tag: int, after: list[str]
    ) -> list[str]:
        members = self.workload.members(node.group)
        payload = payload_of(node, len(members))
        for each in self._of_members(node, members, payload)[members.index(rank)]:
            ways = (("send", each.sends), ("recv", each.receives))
            after = [
                made.add(_message(way, weight * payload, members[other], tag), after)
                for way, messages in ways
                for other, weight in messages
            ]
        return after

    def _of_members(
        self, node: TraceNode, members: tuple[int, ...], payload: float
    ) -> tuple[tuple[Round, ...], ...]:
        """Return the rounds of all members of a collective's group."""
        collective = node.collective
        assert collective is not None
        key = (collective, payload, node.group, node.algorithm)
        found = self._rounds.get(key)
        if found is None:
            shape = group_of(members, self.domain_size)
            plan = self.collectives.plan(collective, payload, shape, algorithm=node.algorithm)
            if not expands(collective, plan.algorithm):
                self.substitutes.add(f"{collective.value} by {plan.algorithm}")
            shown = (collective, plan.algorithm, len(members))
            found = self._rounds.get(shown) or rounds_of_members(*shown)
            self._rounds[shown] = self._rounds[key] = found
        return found

    def _tag(self, *what: object) -> int:
        return self._tags.setdefault(what, len(self._tags))


def _message(operation: str, size: float, other: int, tag: int) -> str:
    way = "to" if operation == "send" else "from"
    return f"{operation} {max(1, math.ceil(size))}b {way} {other} tag {tag} cpu {_NETWORK}"
