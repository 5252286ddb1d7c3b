"""One step in the event engine, under the conditions of its cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.asymmetry import Paces, paces_of
from simulator.conditions import Conditions
from simulator.cost.interference import interferes, mean_slowdown
from simulator.cost.network.bursts import NO_PASSES, Inside
from simulator.cost.network.column import Column
from simulator.cost.network.routed import Routed, route_costs
from simulator.cost.plan import LinkKind
from simulator.cost.priced import WorkCost
from simulator.engine.fabric import Background, Fabric
from simulator.engine.gpu import Interference
from simulator.engine.jitter import Jitter, draw_jitter
from simulator.engine.replicas import Replicas
from simulator.engine.step import EngineRun, run_step
from simulator.hardware.profile import Profile
from simulator.mixed import Mixed, nominal_rates
from simulator.parallel.program import StepProgram
from simulator.schedule.tasks import STREAMS, TaskGraph
from simulator.topology.graph import FloatArray
from simulator.workload.stack import Overlap


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A played step: the run, and the costs and slowdowns of the replica that sets its pace."""

    run: EngineRun
    costs: Sequence[WorkCost]
    slowdown: Sequence[float]
    routed: Routed | None
    step_time: float
    """Seconds; with jitter the mean of the steps that were drawn."""
    drawn: tuple[float, ...] = ()
    """Seconds of each step that was drawn."""
    kinds: int | None = None
    """Of replicas, each played for all that are alike; None where all are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a step is played on."""

    program: StepProgram
    graph: TaskGraph
    profile: Profile
    conditions: Conditions
    mixed: Mixed | None = None
    """The machines of a mixed cluster."""


def play_step(
    stage: Stage,
    costs: Sequence[WorkCost],
    slowdown: Sequence[float] | None = None,
    *,
    inside: Inside = NO_PASSES,
    watched: int = 0,
) -> Played:
    """Return the played step of a graph whose works cost `costs` on an idle network.

    `slowdown[s]` multiplies the compute time of stage s, for all replicas alike. Of the network
    the `watched` fullest links are recorded over time; `inside` is what passes send over it.
    """
    conditions = stage.conditions
    paces = _paces(stage, slowdown)
    alike = (None,) if conditions.uniform else paces.replicas
    routed, others = None, list(_others(conditions))
    rows: Sequence[Sequence[WorkCost]] = (costs,) * len(alike)
    if stage.mixed is not None:
        rows = stage.mixed.costs(stage.program, stage.graph.works, paces)
    if conditions.network is not None:
        network = conditions.network
        routed = route_costs(
            network,
            stage.program,
            stage.graph,
            rows,
            alike,
            background=[each.column for each in others],
            inside=inside,
            watched=watched,
        )
        rows = routed.costs
    fabric = _fabric(others, routed, record=watched > 0)
    runs = [
        _run(stage, rows, fabric, paces, noise) for noise in _noises(conditions, paces, stage.graph)
    ]
    run, drawn = runs[-1], tuple(each.step_time for each in runs)
    return Played(
        run=run,
        costs=rows[run.pace],
        slowdown=paces.slowdown[run.pace],
        routed=routed,
        step_time=sum(drawn) / len(drawn),
        drawn=drawn if conditions.jitter is not None else (),
        kinds=_kinds(conditions, paces),
    )


def _kinds(conditions: Conditions, paces: Paces) -> int | None:
    """Return how many kinds of replicas differ; None where all are alike, mixed as they may be."""
    count = len(paces.replicas)
    sound = not conditions.slow and conditions.jitter is None
    return None if sound and count == 1 else count


def _run(
    stage: Stage,
    rows: Sequence[Sequence[WorkCost]],
    fabric: Fabric,
    paces: Paces,
    noise: FloatArray | None,
) -> EngineRun:
    program, conditions = stage.program, stage.conditions
    capacity = _capacity(stage.profile, rows)
    interference = _interference(program.stack.overlap, rows[0])
    if conditions.uniform:
        return run_step(
            stage.graph, rows[0], capacity, paces.slowdown[0], interference, fabric=fabric
        )
    replicas = Replicas(
        count=len(paces.replicas),
        slowdown=paces.slowdown,
        meeting=paces.meeting,
        costs=rows,
        jitter=noise,
        links=_links(stage, stage.mixed, paces, rows) if stage.mixed is not None else None,
    )
    return run_step(
        stage.graph, rows[0], capacity, None, interference, fabric=fabric, replicas=replicas
    )


def _paces(stage: Stage, slowdown: Sequence[float] | None) -> Paces:
    """Return the paces of all replicas, with `slowdown[s]` of stage s on top."""
    conditions = stage.conditions
    apart = conditions.jitter is not None
    kinds = conditions.kind_of_ranks if stage.mixed is not None else None
    own = paces_of(stage.program.layout, conditions.slow, apart=apart, kinds=kinds)
    return own if slowdown is None else own.times(slowdown)


def _noises(conditions: Conditions, paces: Paces, graph: TaskGraph) -> Sequence[FloatArray | None]:
    """Return the factors of each task of each replica, for each step that is drawn."""
    file = conditions.jitter
    if file is None:
        return (None,)
    jitter = Jitter(kind=file.distribution, deviation=file.deviation, one_in=file.one_in)
    generator = np.random.default_rng(file.seed)
    shape = (len(paces.replicas), len(graph))
    return [draw_jitter(jitter, shape, paces.lockstep, generator) for _ in range(file.steps)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Others:
    """Traffic on the links that is not the step's."""

    column: Column
    demand: float
    """Bytes/s at most, in units of what the column is for."""
    period: float | None = None
    duty: float = 1.0


def _others(conditions: Conditions) -> Iterator[_Others]:
    """Yield the traffic of others, then that of storage."""
    network = conditions.network
    if network is None:
        return
    for traffic in conditions.background:
        column = network.between(np.asarray(traffic.source), np.asarray(traffic.target))
        yield _Others(
            column=column, demand=traffic.bandwidth, period=traffic.period, duty=traffic.duty
        )
    for column, rate in conditions.storage.traffic() if conditions.storage else ():
        yield _Others(column=column, demand=rate)


def _fabric(others: Sequence[_Others], routed: Routed | None, *, record: bool) -> Fabric:
    if routed is None:
        return Fabric()
    return Fabric(
        capacity=tuple(routed.classes.capacity.tolist()),
        background=tuple(
            Background(load=load, demand=each.demand, period=each.period, duty=each.duty)
            for each, load in zip(others, routed.background, strict=True)
            if load is not None
        ),
        record=record,
    )


def _interference(overlap: Overlap, costs: Sequence[WorkCost]) -> Interference | None:
    if not interferes(overlap):
        return None
    return Interference(
        compute=tuple(mean_slowdown(cost.by_category, overlap) for cost in costs),
        communication=overlap.comm_slowdown,
    )


def _capacity(profile: Profile, rows: Sequence[Sequence[WorkCost]]) -> Mapping[LinkKind, float]:
    """Nominal rates of a rank's links; never below what a flow measured alone reaches."""
    distinct = {id(costs): costs for costs in rows}.values()
    return _at_least(nominal_rates(profile), (cost for costs in distinct for cost in costs))


def _links(
    stage: Stage, mixed: Mixed, paces: Paces, rows: Sequence[Sequence[WorkCost]]
) -> Sequence[Mapping[LinkKind, float]]:
    """Return the same for each stage of each class of replicas: those of its slowest machine."""
    graph = stage.graph
    run_by: list[set[int]] = [set() for _ in range(graph.pp)]
    for work, stream in zip(graph.work, graph.stream, strict=True):
        run_by[stream // STREAMS].add(work)
    return [
        _at_least(mixed.link_rates(stands), (costs[work] for work in run_by[number]))
        for standing, costs in zip(paces.standing, rows, strict=True)
        for number, stands in enumerate(standing)
    ]


def _at_least(
    nominal: Mapping[LinkKind, float], costs: Iterable[WorkCost]
) -> Mapping[LinkKind, float]:
    """Return rates of links that are at least those of every flow of some works."""
    found = dict(nominal)
    for cost in costs:
        for plan in cost.plans:
            for phase in plan.phases:
                found[phase.link] = max(found[phase.link], phase.rate)
    return found
