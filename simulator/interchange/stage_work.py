"""The nodes that ranks of a stage have in common, and how work becomes such nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from simulator.cost.plan import CommPlan
from simulator.interchange.peers import Group, Neighbour, Peer, Spread
from simulator.interchange.records import NodeKind, TraceNode, size_of
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.program import StepProgram
from simulator.parallel.work import CommWork
from simulator.schedule.tasks import StreamKind

IN_PASS, DATA, TIED, NORM = "pass", "data", "tied", "norm"
"""Channels: each has communicators of its own, as frameworks make them."""
Nodes = tuple[int, ...]
"""Numbers of nodes of one stage."""


class StageNode(NamedTuple):
    """A node without the group or rank that it talks to, and how each rank finds that."""

    node: TraceNode
    to: Group | Peer | None


@dataclass(slots=True)
class Stage:
    """The nodes of one stage so far, and the last ones of each of its streams."""

    nodes: list[StageNode] = field(default_factory=list)
    last: dict[StreamKind, Nodes] = field(default_factory=dict)
    hops: int = 0

    def add(
        self,
        name: str,
        kind: NodeKind,
        after: Iterable[int],
        to: Group | Peer | None = None,
        **known: object,
    ) -> Nodes:
        """Append a node; return its number as what others wait for."""
        number = len(self.nodes)
        made = TraceNode(
            number=number,
            name=name,
            kind=kind,
            after=tuple(sorted(set(after))),
            **known,  # type: ignore[arg-type]
        )
        self.nodes.append(StageNode(made, to))
        return (number,)


def add_run(stage: Stage, comm: CommWork, seconds: float, after: Nodes, *, backward: bool) -> Nodes:
    """Append one run of a collective of a pass."""
    group = comm.group
    if comm.collective is Collective.HOST_COPY:
        kind = NodeKind.LOAD if backward else NodeKind.STORE
        return stage.add(comm.name, kind, after, seconds=seconds, size=comm.payload)
    if comm.collective is Collective.SEND_RECV:
        return _hop(stage, comm, seconds, after)
    return stage.add(
        comm.name,
        NodeKind.COLLECTIVE,
        after,
        Spread(IN_PASS, group.size, group.stride),
        seconds=seconds,
        size=size_of(comm.collective, comm.payload, group.size),
        collective=comm.collective,
        algorithm=comm.algorithm,
        network_share=comm.network_share,
    )


def _hop(stage: Stage, comm: CommWork, seconds: float, after: Nodes) -> Nodes:
    """Append one hop round a ring: to the next rank, and from the one before."""
    size, stride, stage.hops = comm.group.size, comm.group.stride, stage.hops + 1
    known: dict[str, object] = {"size": comm.payload, "tag": stage.hops}
    to, of = Neighbour(size, stride, 1), Neighbour(size, stride, -1)
    sent = stage.add(comm.name, NodeKind.SEND, after, to, seconds=seconds, **known)
    return (*sent, *stage.add(comm.name, NodeKind.RECEIVE, after, of, **known))


def add_collective(
    stage: Stage, plan: CommPlan, group: GroupShape, channel: str, after: Nodes
) -> Nodes:
    """Append a collective of a group of ranks of the stage; none where the group is one rank."""
    if group.size == 1:
        return after
    return add_joint(stage, plan, Spread(channel, group.size, group.stride), after)


def add_joint(stage: Stage, plan: CommPlan, to: Group, after: Nodes) -> Nodes:
    """Append the collective of a plan over a group."""
    return stage.add(
        plan.collective.value,
        NodeKind.COLLECTIVE,
        after,
        to,
        seconds=plan.seconds,
        size=size_of(plan.collective, plan.payload, plan.group.size),
        collective=plan.collective,
    )


def data_groups_of(program: StepProgram, plans: Sequence[CommPlan]) -> Iterator[GroupShape]:
    """Yield the group of each plan: dense weights, then routed experts.

    Each begins with the ranks that hold its parameters; an all-reduce behind a reduce-scatter is
    over the replicas of its shards.
    """
    groups = [
        (program.data_group, program.replica_group),
        (program.expert_data_group, program.expert_replica_group),
    ]
    before, weights = None, -1
    for plan in plans:
        scattered = before is Collective.REDUCE_SCATTER
        replicas = scattered and plan.collective is Collective.ALL_REDUCE
        weights += not replicas
        yield groups[weights][replicas]
        before = plan.collective
