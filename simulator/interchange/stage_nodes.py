"""What the ranks of each pipeline stage do in a step, as nodes that all of them have in common."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.cost.maxima import maxima_plan
from simulator.cost.priced import WorkCost
from simulator.cost.step_costs import StepCosts
from simulator.interchange.pass_nodes import PassNodes, pass_nodes
from simulator.interchange.peers import AcrossStages, SamePlace
from simulator.interchange.records import NodeKind
from simulator.interchange.stage_work import (
    DATA,
    IN_PASS,
    NORM,
    TIED,
    Nodes,
    Stage,
    StageNode,
    add_collective,
    add_joint,
    add_run,
    data_groups_of,
)
from simulator.parallel.groups import Collective
from simulator.parallel.program import StepProgram
from simulator.parallel.work import FP32_BYTES
from simulator.schedule.tasks import NO_TASK, STREAMS, StreamKind, TaskGraph, Work, WorkKind

_PASSES = (
    WorkKind.FORWARD,
    WorkKind.BACKWARD,
    WorkKind.BACKWARD_INPUT,
    WorkKind.BACKWARD_WEIGHT,
)
_WAYS = {
    WorkKind.SEND_FORWARD: 1,
    WorkKind.EXCHANGE_FORWARD: 1,
    WorkKind.SEND_BACKWARD: -1,
    WorkKind.EXCHANGE_BACKWARD: -1,
}
"""Places by which a transfer moves on."""


def stage_nodes(
    program: StepProgram, graph: TaskGraph, costs: StepCosts, prices: Sequence[WorkCost]
) -> tuple[tuple[StageNode, ...], ...]:
    """Return the nodes of the ranks of each stage; `prices[i]` is the cost of `graph.works[i]`.

    Streams are dependencies: what follows on a stream waits for what went before. A pipeline
    transfer is a send of one stage and a receive of the other. What joins all stages, the norm of
    the gradient, is an all-reduce of one number over them.
    """
    return _Builder(program, graph, costs, prices).build()


class _Builder:
    """Owns the growing nodes of all stages."""

    def __init__(
        self,
        program: StepProgram,
        graph: TaskGraph,
        costs: StepCosts,
        prices: Sequence[WorkCost],
    ) -> None:
        self.program, self.graph, self.costs, self.prices = program, graph, costs, prices
        self.pipeline = program.layout.pipeline
        self.stages = [Stage() for _ in range(graph.pp)]
        self.done: dict[int, Nodes] = {}
        self.joined: dict[int, tuple[int, ...]] = {}
        self.patterns: dict[Work, PassNodes] = {}

    def build(self) -> tuple[tuple[StageNode, ...], ...]:
        for task in range(len(self.graph)):
            work = self.graph.works[self.graph.work[task]]
            if work.kind is WorkKind.JOIN:
                self.joined[task] = self._waits(task)
            else:
                stream = StreamKind(self.graph.stream[task] % STREAMS)
                stage = self.stages[work.stage]
                before = (*stage.last.get(stream, ()), *self._local(task, work))
                ends = self._task(task, work, before)
                self.done[task] = stage.last[stream] = ends
        return tuple(tuple(stage.nodes) for stage in self.stages)

    def _task(self, task: int, work: Work, before: Nodes) -> Nodes:
        """Append what a task does; return what has to end before it has."""
        if work.kind in _PASSES:
            return self._pass(work, before)
        if work.kind in _WAYS:
            return self._transfer(task, work, before)
        if work.kind is WorkKind.OPTIMIZER:
            return self._update(task, work, before)
        return self._data(task, work, before)

    def _waits(self, task: int) -> tuple[int, ...]:
        """Return the tasks that a task waits for, joins replaced by what they join."""
        direct = (self.graph.first[task], self.graph.second[task])
        found = (self.joined.get(wait, (wait,)) for wait in direct if wait != NO_TASK)
        return tuple(sorted({wait for waits in found for wait in waits}))

    def _stage_of(self, task: int) -> int:
        return self.graph.stream[task] // STREAMS

    def _local(self, task: int, work: Work) -> Nodes:
        """Return the nodes of the own stage that a task waits for, receives among them."""
        found: list[int] = []
        for wait in self._waits(task):
            if self._stage_of(wait) == work.stage:
                found += self.done[wait]
            elif work.kind in _PASSES:
                found += self._receive(wait, work)
        return tuple(found)

    def _pass(self, work: Work, before: Nodes) -> Nodes:
        pattern = self.patterns.get(work)
        if pattern is None:
            pattern = self.patterns[work] = pass_nodes(self.costs, self.program, work)
        stage, made = self.stages[work.stage], list[Nodes]()
        for name, seconds, flops, comm, after in pattern.nodes:
            waits = tuple(n for place in after for n in made[place]) if after else before
            if comm is None:
                ends = stage.add(name, NodeKind.COMPUTE, waits, seconds=seconds, flops=flops)
            else:
                ends = add_run(stage, comm, seconds, waits, backward=work.kind != WorkKind.FORWARD)
            made.append(ends)
        ends = tuple(n for place in pattern.last for n in made[place]) or before
        plan = maxima_plan(self.program, work, self.costs.collectives)
        return ends if plan is None else add_collective(stage, plan, plan.group, IN_PASS, ends)

    def _transfer(self, task: int, work: Work, before: Nodes) -> Nodes:
        """Add what the task's own stage does: it sends, or it asks for what another one sends."""
        sender = self.pipeline.stage(work.chunk)
        plan = self.prices[self.graph.work[task]].plans[0]
        receiver = self.pipeline.stage(work.chunk + _WAYS[work.kind])
        to = SamePlace(receiver)
        known: dict[str, object] = {"seconds": plan.seconds, "size": plan.payload, "tag": task}
        name = work.kind.name.lower()
        if work.stage == sender:
            return self.stages[sender].add(name, NodeKind.SEND, before, to, **known)
        produced = [n for wait in self._waits(task) for n in self.done[wait]]
        known["on_request"] = True
        self.stages[sender].add(name, NodeKind.SEND, produced, to, **known)
        return self._arrive(task, work.stage, before, on_request=True)

    def _receive(self, wait: int, work: Work) -> Nodes:
        """Add the receive of what another stage sends on its own stream.

        It is posted when the pass before has run, which is early enough: what has arrived waits.
        Slices that are gathered afterwards are received, and gathered, as soon as they are there.
        """
        stage = self.stages[work.stage]
        gathers = len(self.prices[self.graph.work[wait]].plans) > 1
        after = () if gathers else stage.last.get(StreamKind.COMPUTE, ())
        return self._arrive(wait, work.stage, after)

    def _arrive(
        self, transfer: int, receiver: int, after: Nodes, *, on_request: bool = False
    ) -> Nodes:
        work = self.graph.works[self.graph.work[transfer]]
        stage, (plan, *gather) = self.stages[receiver], self.prices[self.graph.work[transfer]].plans
        ends = stage.add(
            work.kind.name.lower().replace("send", "receive"),
            NodeKind.RECEIVE,
            after,
            SamePlace(self.pipeline.stage(work.chunk)),
            size=plan.payload,
            tag=transfer,
            on_request=on_request,
        )
        for slices in gather:
            group = self.program.shard.tensor_group
            ends = add_collective(stage, slices, group, IN_PASS, ends)
        return ends

    def _data(self, task: int, work: Work, before: Nodes) -> Nodes:
        """Add the collectives of gradients and parameters, one after another."""
        stage, ends = self.stages[work.stage], before
        plans = self.prices[self.graph.work[task]].plans
        if work.kind is WorkKind.TIED_REDUCE:
            to = AcrossStages(TIED, (0, self.graph.pp - 1))
            return add_joint(stage, plans[0], to, before)
        for plan, group in zip(plans, data_groups_of(self.program, plans), strict=True):
            ends = add_collective(stage, plan, group, DATA, ends)
        return ends

    def _update(self, task: int, work: Work, before: Nodes) -> Nodes:
        """Add the norm of the gradient, which joins all stages, and the update."""
        stage, pp = self.stages[work.stage], self.graph.pp
        if pp > 1:
            before = stage.add(
                "gradient_norm",
                NodeKind.COLLECTIVE,
                before,
                AcrossStages(NORM, tuple(range(pp))),
                size=FP32_BYTES,
                collective=Collective.ALL_REDUCE,
            )
        seconds = self.prices[self.graph.work[task]].seconds
        if not seconds:
            return before
        return stage.add("optimizer", NodeKind.COMPUTE, before, seconds=seconds)
