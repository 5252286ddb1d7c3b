"""One step in the event engine, under the conditions of its cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.asymmetry import Paces, paces_of
from simulator.conditions import Conditions
from simulator.cost.interference import interferes, mean_slowdown
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
from simulator.parallel.program import StepProgram
from simulator.schedule.tasks import TaskGraph
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


def play_step(
    stage: Stage,
    costs: Sequence[WorkCost],
    slowdown: Sequence[float] | None = None,
    *,
    inside: Sequence[tuple[Column, float]] = (),
    watched: int = 0,
) -> Played:
    """Return the played step of a graph whose works cost `costs` on an idle network.

    `slowdown[s]` multiplies the compute time of stage s, for all replicas alike. Of the network
    the `watched` fullest links are recorded over time; `inside` is what passes carry over it.
    """
    conditions = stage.conditions
    paces = _paces(stage, slowdown)
    alike = (None,) if conditions.uniform else paces.replicas
    routed = None
    rows: Sequence[Sequence[WorkCost]] = (costs,)
    if conditions.network is not None:
        network = conditions.network
        others = [
            network.between(np.asarray(traffic.source), np.asarray(traffic.target))
            for traffic in conditions.background
        ]
        routed = route_costs(
            network,
            stage.program,
            stage.graph,
            costs,
            alike,
            background=others,
            inside=inside,
            watched=watched,
        )
        rows = routed.costs
    fabric = _fabric(conditions, routed, record=watched > 0)
    runs = [
        _run(stage, rows, fabric, paces, noise) for noise in _noises(conditions, paces, stage.graph)
    ]
    run, drawn = runs[-1], tuple(each.step_time for each in runs)
    return Played(
        run=run,
        costs=rows[run.pace if len(rows) > 1 else 0],
        slowdown=paces.slowdown[run.pace],
        routed=routed,
        step_time=sum(drawn) / len(drawn),
        drawn=drawn if conditions.jitter is not None else (),
        kinds=None if conditions.uniform else len(paces.replicas),
    )


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
        costs=rows if len(rows) > 1 else None,
        jitter=noise,
    )
    return run_step(
        stage.graph, rows[0], capacity, None, interference, fabric=fabric, replicas=replicas
    )


def _paces(stage: Stage, slowdown: Sequence[float] | None) -> Paces:
    """Return the paces of all replicas, with `slowdown[s]` of stage s on top."""
    conditions = stage.conditions
    apart = conditions.jitter is not None
    own = paces_of(stage.program.layout, conditions.slow, apart=apart)
    if slowdown is None:
        return own
    rows = (tuple(a * b for a, b in zip(row, slowdown, strict=True)) for row in own.slowdown)
    return replace(own, slowdown=tuple(rows))


def _noises(conditions: Conditions, paces: Paces, graph: TaskGraph) -> Sequence[FloatArray | None]:
    """Return the factors of each task of each replica, for each step that is drawn."""
    file = conditions.jitter
    if file is None:
        return (None,)
    jitter = Jitter(kind=file.distribution, deviation=file.deviation, one_in=file.one_in)
    generator = np.random.default_rng(file.seed)
    shape = (len(paces.replicas), len(graph))
    return [draw_jitter(jitter, shape, paces.lockstep, generator) for _ in range(file.steps)]


def _fabric(conditions: Conditions, routed: Routed | None, *, record: bool) -> Fabric:
    if routed is None:
        return Fabric()
    return Fabric(
        capacity=tuple(routed.classes.capacity.tolist()),
        background=tuple(
            Background(
                load=load, demand=traffic.bandwidth, period=traffic.period, duty=traffic.duty
            )
            for traffic, load in zip(conditions.background, routed.background, strict=True)
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
    nominal = {LinkKind.SCALE_UP: profile.node.scale_up.bandwidth}
    nominal[LinkKind.SCALE_OUT] = profile.nic_bandwidth if profile.node.nic else 0.0
    nominal[LinkKind.HOST] = profile.node.host.pcie_bandwidth
    for costs in rows:
        for cost in costs:
            for plan in cost.plans:
                for phase in plan.phases:
                    nominal[phase.link] = max(nominal[phase.link], phase.rate)
    return nominal
