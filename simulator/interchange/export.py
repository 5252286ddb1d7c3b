"""A step as the traces of all of its ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from simulator.cost.priced import WorkCost
from simulator.cost.step_costs import StepCosts
from simulator.errors import InputError, Problem, UnsupportedError
from simulator.interchange.peers import (
    AcrossStages,
    Group,
    Peer,
    Spread,
    members_of,
    peer_of,
)
from simulator.interchange.records import EVERY_RANK, RankTrace, TraceNode, Workload
from simulator.interchange.stage_nodes import stage_nodes
from simulator.interchange.stage_work import StageNode
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.placement import Placement
from simulator.parallel.program import StepProgram
from simulator.schedule.tasks import TaskGraph

RANKS_LIMIT = 256
"""Ranks that are written unless the caller says otherwise: each is a file of its own."""


@dataclass(frozen=True, kw_only=True)
class StepTrace:
    """What the ranks of each stage do; each rank differs only in whom it talks to."""

    layout: ParallelLayout
    stages: tuple[tuple[StageNode, ...], ...]

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.layout.world_size

    def stage_of(self, rank: int) -> int:
        """Return the pipeline stage of a rank."""
        return rank * self.layout.pp // self.world_size

    @cached_property
    def numbers(self) -> dict[tuple[str, tuple[int, ...]], int]:
        """The number of each communicator, by its channel and its ranks; the first is 1."""
        found: dict[tuple[str, tuple[int, ...]], int] = {}
        used = [_groups_of(nodes) for nodes in self.stages]
        for rank in range(self.world_size):
            for group in used[self.stage_of(rank)]:
                key = (group.channel, members_of(group, rank, self.layout))
                found.setdefault(key, EVERY_RANK + 1 + len(found))
        return found

    @cached_property
    def groups(self) -> dict[int, tuple[int, ...]]:
        """The ranks of each communicator by its number."""
        return {number: members for (_, members), number in self.numbers.items()}

    def resolved(self, to: Group | Peer | None, rank: int) -> tuple[int, int]:
        """Return the group and the peer of a rank; `EVERY_RANK` and -1 where it has none."""
        if to is None:
            return EVERY_RANK, -1
        if isinstance(to, Spread | AcrossStages):
            return self.numbers[to.channel, members_of(to, rank, self.layout)], -1
        return EVERY_RANK, peer_of(to, rank, self.layout)

    def rank(self, rank: int) -> RankTrace:
        """Return what one rank does."""
        return tuple(self._node(node, rank) for node in self.stages[self.stage_of(rank)])

    def workload(self) -> Workload:
        """Return what all ranks do."""
        ranks = tuple(self.rank(rank) for rank in range(self.world_size))
        return Workload(ranks=ranks, groups=self.groups)

    def _node(self, node: StageNode, rank: int) -> TraceNode:
        if node.to is None:
            return node.node
        group, peer = self.resolved(node.to, rank)
        return replace(node.node, group=group, peer=peer)


def trace_step(
    program: StepProgram,
    graph: TaskGraph,
    costs: StepCosts,
    prices: Sequence[WorkCost],
    *,
    ranks_limit: int = RANKS_LIMIT,
    where: str = "",
) -> StepTrace:
    """Return the step of a healthy cluster as traces; `prices[i]` is the cost of `graph.works[i]`.

    Raises:
        InputError: more ranks than `ranks_limit`.
        UnsupportedError: a pipeline that holds each part of the model twice (dualpipe).
    """
    layout = program.layout
    if layout.world_size > ranks_limit:
        problem = Problem(
            where=where,
            key="layout",
            found=f"{layout.world_size} ranks",
            rule=f"a trace of each rank is written for at most {ranks_limit} ranks",
            fix=f"--ranks-limit {layout.world_size}, or a smaller dp",
        )
        raise InputError(problem)
    if layout.pipeline.placement is Placement.BIDIRECTIONAL:
        problem = Problem(
            where=where,
            key="layout.schedule",
            found=layout.effective_schedule.value,
            rule="the two stages that hold a part of the model reduce their parts in opposite "
            "order, which communicators of a trace cannot do",
            fix="dualpipe-v",
        )
        raise UnsupportedError(problem)
    return StepTrace(layout=layout, stages=stage_nodes(program, graph, costs, prices))


def _groups_of(nodes: Sequence[StageNode]) -> list[Group]:
    """Return the distinct groups that nodes talk of, in order of appearance."""
    wanted = (node.to for node in nodes)
    return list(dict.fromkeys(to for to in wanted if isinstance(to, Spread | AcrossStages)))
