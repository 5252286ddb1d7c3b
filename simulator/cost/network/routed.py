"""The collectives of a step on the links of a cluster: how slow each is, and what it loads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from simulator.cost.network.bursts import NO_PASSES, Inside, merged
from simulator.cost.network.classes import LinkClasses, classify, contested
from simulator.cost.network.column import Column
from simulator.cost.network.groups import Alike, together
from simulator.cost.network.network import Network
from simulator.cost.plan import Burst, Load
from simulator.cost.priced import WorkCost
from simulator.parallel.program import StepProgram
from simulator.schedule.tasks import TaskGraph, Work, WorkKind
from simulator.topology.graph import FloatArray, IntArray

MEETS = frozenset(
    {
        WorkKind.GATHER,
        WorkKind.REDUCE,
        WorkKind.GATHER_CHUNK,
        WorkKind.BROADCAST,
        WorkKind.AVERAGE,
    }
)
"""Work that data-parallel replicas do together."""
_ROUNDING = 1e-9
"""Relative; by so much the parts of a pass may add up to more than it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Routed:
    """The costs of a step's work on a network."""

    costs: tuple[tuple[WorkCost, ...], ...]
    """[replica][work]; work that replicas do together is the same for all."""
    classes: LinkClasses
    kept: IntArray
    """Classes that phases name in `over`: those on which flows of different streams can meet."""
    carried: FloatArray
    """(classes,) bytes that one link of each carries in the step."""
    background: tuple[Load | None, ...] = ()
    """Of each column of others' traffic."""


def limited_costs(
    network: Network, program: StepProgram, works: Sequence[Work], costs: Sequence[WorkCost]
) -> list[WorkCost]:
    """Return the costs of works with every collective as slow as its fullest link makes it.

    Replicas are taken to do the same at the same time.
    """
    return [_limited(network, program, work, cost) for work, cost in zip(works, costs, strict=True)]


def route_costs(
    network: Network,
    program: StepProgram,
    graph: TaskGraph,
    costs: Sequence[Sequence[WorkCost]],
    replicas: Sequence[Alike | None] = (None,),
    *,
    background: Sequence[Column] = (),
    inside: Inside = NO_PASSES,
    watched: int = 0,
) -> Routed:
    """Return the costs of a step whose flows share links, of each replica or of all alike.

    `costs` are those of an idle network without limits, one row for each of `replicas`. Work that
    all of them do together costs the same in each row and is routed once. `background` is what
    others load, `inside` what passes send. The `watched` classes that carry most for their capacity
    are kept, whether flows meet there or not.
    """
    lane_of = dict(zip(graph.work, graph.stream, strict=True))
    flows = _Flows(
        network=network,
        program=program,
        works=graph.works,
        lane_of=lane_of,
        runs=Counter(graph.work),
        inside=inside,
    )
    entries = [
        [flows.entry(number, cost, replica) for number, cost in enumerate(row)]
        for row, replica in zip(costs, replicas, strict=True)
    ]
    columns = (*flows.columns, *background)
    classes = classify(columns, network.capacity)
    amounts = [*flows.bytes, *(0.0 for _ in background)]
    carried = classes.weights @ np.array(amounts, dtype=np.float64)
    kept = contested(classes, [*flows.lanes, *range(-len(background), 0)])
    kept = np.union1d(kept, np.argsort(-carried / classes.capacity, kind="stable")[:watched])
    loads = [classes.load(number, kept) for number in range(len(columns))]
    return Routed(
        costs=tuple(tuple(entry.loaded(loads) for entry in row) for row in entries),
        classes=classes,
        kept=kept,
        carried=carried,
        background=tuple(loads[len(flows.columns) :]),
    )


@dataclass(slots=True, eq=False)
class _Entry:
    """The cost of one work, and the column of each phase of its plans and of what it sends."""

    cost: WorkCost
    columns: tuple[tuple[int | None, ...], ...] = ()
    bursts: tuple[tuple[Burst, int | None], ...] = ()
    """Of a pass, with the column of each."""
    turns: int = 1
    _found: WorkCost | None = None

    def loaded(self, loads: Sequence[Load | None]) -> WorkCost:
        """Return the cost with what its phases load; one object however often it is asked for."""
        if self._found is None and self.bursts:
            self._found = self._with_bursts(loads)
        elif self._found is None:
            plans = tuple(
                replace(
                    plan,
                    phases=tuple(
                        phase if column is None else replace(phase, over=loads[column])
                        for phase, column in zip(plan.phases, columns, strict=True)
                    ),
                )
                for plan, columns in zip(self.cost.plans, self.columns, strict=True)
            )
            self._found = replace(self.cost, plans=plans) if plans else self.cost
        return self._found

    def _with_bursts(self, loads: Sequence[Load | None]) -> WorkCost:
        """Return the cost of a pass with what it sends over links that are kept."""
        bursts = merged(
            replace(burst, phase=replace(burst.phase, over=loads[column]))
            for burst, column in self.bursts
            if column is not None and loads[column] is not None
        )
        return replace(self.cost, bursts=bursts, turns=self.turns) if bursts else self.cost


@dataclass(slots=True, kw_only=True, eq=False)
class _Flows:
    """Collects the columns of all flows of a step, each once a stream."""

    network: Network
    program: StepProgram
    works: tuple[Work, ...]
    lane_of: dict[int, int]
    """The stream that each work runs on."""
    runs: Mapping[int, int]
    """How often each work runs in the step of one replica."""
    inside: Inside
    columns: list[Column] = field(default_factory=list)
    lanes: list[int] = field(default_factory=list)
    bytes: list[float] = field(default_factory=list)
    """Wire bytes of a rank in the step, by column."""
    _numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    _shared: dict[int, _Entry] = field(default_factory=dict)

    def entry(self, number: int, cost: WorkCost, replica: Alike | None) -> _Entry:
        """Return the entry of a work of one replica."""
        if not cost.plans:
            return self._pass(number, cost, replica)
        if self.works[number].kind not in MEETS:
            return self._routed(number, cost, replica, self._lane(number, replica))
        found = self._shared.get(number)
        if found is None:
            found = self._routed(number, cost, None, self.lane_of[number])
            self._shared[number] = found
        return found

    def _lane(self, number: int, replica: Alike | None) -> int:
        before = 0 if replica is None else replica[0]
        return self.lane_of[number] + before * (max(self.lane_of.values()) + 1)

    def _pass(self, number: int, cost: WorkCost, replica: Alike | None) -> _Entry:
        """Return the entry of a work without collectives of its own, with those inside it."""
        if number not in self.inside:
            return _Entry(cost)
        flows, turns = self.inside[number]
        lane, bursts = self._lane(number, replica), []
        for flow in flows:
            groups = replace(flow.groups, replicas=replica)
            column = self.network.column(flow.plan, flow.place, groups, self.program.layout)
            place = self._number(column, lane, flow.sent * self.runs[number])
            bursts += [(burst, place) for burst in flow.bursts]
        if sum(burst.seconds for burst, _ in bursts) > cost.seconds * (1 + _ROUNDING):
            # A pass that was measured as shorter than its parts shows nothing of them.
            return _Entry(cost)
        return _Entry(cost, bursts=tuple(bursts), turns=turns)

    def _routed(self, number: int, cost: WorkCost, replica: Alike | None, lane: int) -> _Entry:
        network, program, work = self.network, self.program, self.works[number]
        slowed = _limited(network, program, work, cost, replica)
        columns = []
        for plan in slowed.plans:
            groups = together(program, work, plan.group, replica)
            found = []
            for place, phase in enumerate(plan.phases):
                column = network.column(plan, place, groups, program.layout)
                found.append(self._number(column, lane, phase.wire_bytes * self.runs[number]))
            columns.append(tuple(found))
        return _Entry(slowed, tuple(columns))

    def _number(self, column: Column | None, lane: int, carried: float) -> int | None:
        """Return the number of a column that a stream loads with so many wire bytes a step."""
        if column is None or not len(column.links):
            return None
        key = id(column), lane
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.columns)
            self.columns.append(column)
            self.lanes.append(lane)
            self.bytes.append(0.0)
        self.bytes[number] += carried
        return number


def _limited(
    network: Network,
    program: StepProgram,
    work: Work,
    cost: WorkCost,
    replica: Alike | None = None,
) -> WorkCost:
    """Return the cost of a communication work as slow as its fullest links make it."""
    plans = []
    for plan in cost.plans:
        groups = together(program, work, plan.group, replica)
        plans.append(plan if groups is None else network.limited(plan, groups, program.layout))
    if all(new is old for new, old in zip(plans, cost.plans, strict=True)):
        return cost
    seconds = sum(plan.seconds for plan in plans)
    return replace(cost, plans=tuple(plans), seconds=seconds)
