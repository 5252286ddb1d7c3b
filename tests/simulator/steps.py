"""A layout made ready to be played by hand: its program, task graph and costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulator.api import Forecaster
from simulator.cost.plan import LinkKind
from simulator.cost.priced import WorkCost
from simulator.engine.step import EngineRun, run_step
from simulator.estimate import Timing, estimate_timing
from simulator.hardware.profile import Profile
from simulator.parallel.layout import ParallelLayout, ScheduleName
from simulator.parallel.program import StepProgram
from simulator.results import Category
from simulator.schedule.graph import build_graph
from simulator.schedule.shape import graph_shape
from simulator.schedule.tasks import GraphShape, Sync, TaskGraph, WorkKind
from simulator.workload.job import TrainingJob
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack
from tests.fakes import NIC, SCALE_UP, fake_profile, fake_stack, tiny_job, tiny_model

CAPACITY = {LinkKind.SCALE_UP: SCALE_UP, LinkKind.SCALE_OUT: NIC}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step with both ways to time it."""

    program: StepProgram
    graph: TaskGraph
    costs: Sequence[WorkCost]

    def timing(self) -> Timing:
        return estimate_timing(self.graph, self.costs)

    def play(self) -> EngineRun:
        return run_step(self.graph, self.costs, CAPACITY)

    def seconds(self, kind: WorkKind) -> list[float]:
        """Return the durations of all distinct work of a kind, in order of appearance."""
        pairs = zip(self.graph.works, self.costs, strict=True)
        return [cost.seconds for work, cost in pairs if work.kind is kind]


def forecaster(
    layout: ParallelLayout,
    *,
    model: ModelSpec | None = None,
    job: TrainingJob | None = None,
    stack: Stack | None = None,
    profile: Profile | None = None,
) -> Forecaster:
    """Return the forecaster of a cluster that `layout` fills."""
    return Forecaster(
        model or tiny_model(),
        job or tiny_job(),
        stack or fake_stack(),
        profile or fake_profile(),
        layout.world_size,
    )


def step_of(layout: ParallelLayout, cast: Forecaster | None = None) -> Step:
    """Return the step of a layout, of local SGD the one that averages."""
    cast = cast or forecaster(layout)
    program = cast.program(layout)
    graph = build_graph(graph_shape(program, averages=True))
    return Step(program=program, graph=graph, costs=cast.costs.durations(program, graph.works))


def bare_shape(schedule: ScheduleName, pp: int, vpp: int, micro_batches: int) -> GraphShape:
    """Return a pipeline and nothing beside it: no gradients, no gathers."""
    return GraphShape(
        schedule=schedule,
        pp=pp,
        vpp=vpp,
        micro_batches=micro_batches,
        segments=(1,) * (pp * vpp),
        sync=Sync.NEVER,
        gathers=False,
        prefetch=0,
        blocking_send=False,
        tied=False,
        tail=WorkKind.JOIN,
        head_gather=False,
    )


def uniform_costs(graph: TaskGraph, seconds: dict[WorkKind, float]) -> list[WorkCost]:
    """Return costs that depend on the kind of work only; what is not named takes no time."""
    return [
        WorkCost(
            seconds=seconds.get(work.kind, 0.0),
            by_category={Category.GEMM: seconds.get(work.kind, 0.0)},
        )
        for work in graph.works
    ]


def may_share_a_link(step: Step) -> bool:
    """Return whether two transfers of one rank can be on the same link at the same time.

    Streams run their tasks one by one, so one of the two is a pipeline send and the other a
    collective of the data stream before the update. They share where both use the scale-up link
    or both the NIC; an HSDP reduction and a send that is sliced over tp use both. They never meet
    where sends block and all gradients are reduced after the last pass.
    """
    shape = graph_shape(step.program, averages=True)
    sequential = shape.blocking_send and shape.sync in (Sync.NEVER, Sync.AFTER)
    if sequential and not shape.gathers and not shape.head_gather:
        return False
    sends = _links(step, WorkKind.SEND_FORWARD, WorkKind.SEND_BACKWARD)
    data = _links(step, WorkKind.GATHER, WorkKind.REDUCE)
    if shape.head_gather:
        data |= _links(step, WorkKind.GATHER)
    return bool(sends & data)


def _links(step: Step, *kinds: WorkKind) -> set[LinkKind]:
    return {
        phase.link
        for work, cost in zip(step.graph.works, step.costs, strict=True)
        if work.kind in kinds
        for plan in cost.plans
        for phase in plan.phases
        if phase.wire_bytes
    }
