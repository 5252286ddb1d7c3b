"""A cluster as collectives meet it: ranks in their places, and what the fullest link allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from simulator.cost.collectives.pattern import Members, Traffic
from simulator.cost.collectives.registry import ALGORITHMS
from simulator.cost.collectives.teams import teams_of
from simulator.cost.network.column import Column
from simulator.cost.network.groups import Together
from simulator.cost.plan import CommPhase, CommPlan, LinkKind
from simulator.parallel.domains import PlacedDomains, members
from simulator.parallel.layout import ParallelLayout
from simulator.topology.graph import FloatArray, IntArray
from simulator.topology.topology import Topology


class Routes(Protocol):
    """What a router answers; see `simulator.topology.routing.Router`."""

    def loads(self, source: IntArray, target: IntArray, weight: FloatArray) -> FloatArray:
        """Return the bytes on each link of messages between accelerators."""
        ...

    def mesh_loads(self, groups: IntArray) -> FloatArray:
        """Return the bytes on each link of a unit for a wire byte of each rank of groups in it."""
        ...


_Key = tuple[object, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """Where ranks stand on a topology, and the loads of the collectives asked for so far."""

    topology: Topology
    routes: Routes
    places: IntArray
    """(world,) the accelerator of each rank."""
    domain_size: int
    """Accelerators of one scale-up domain, one after another."""
    nominal: float
    """Bytes/s of the scale-up links of one accelerator together, one direction."""
    algorithms: Mapping[str, str] = field(default_factory=dict)
    """Collective -> the algorithm that a scenario takes."""
    _columns: dict[_Key, Column] = field(default_factory=dict, repr=False)

    def placed(self, places: IntArray) -> Network:
        """Return the same network with ranks in other places."""
        return replace(self, places=places, _columns={})

    @cached_property
    def domains(self) -> PlacedDomains:
        """Which ranks share a scale-up domain."""
        return PlacedDomains(self.places // self.domain_size)

    @cached_property
    def capacity(self) -> FloatArray:
        """(links,) bytes/s of each link."""
        return self.topology.capacity

    @property
    def reduces(self) -> bool:
        """Whether switches of the fabric reduce (SHARP)."""
        return self.topology.fabric is not None and self.topology.fabric.reduces

    @cached_property
    def _domain_of(self) -> IntArray:
        return np.arange(self.topology.size) // self.domain_size

    @cached_property
    def joins_directly(self) -> bool:
        """Whether links inside a unit must be looked at: accelerators are no equals on one switch.

        Then what a group reaches depends on who is in it.
        """
        return not _one_switch(self.topology)

    def in_passes(self, plan: CommPlan) -> CommPlan:
        """Return a plan inside a pass, which all such groups of the cluster do at the same time."""
        size, stride = plan.group.size, plan.group.stride
        if not stride:
            return plan
        return self._limited(plan, ("everywhere", size, stride), self._everywhere(size, stride))

    def limited(self, plan: CommPlan, groups: Together, layout: ParallelLayout) -> CommPlan:
        """Return a plan that some groups do at the same time, as slow as their fullest link."""
        return self._limited(plan, self._key(groups, layout), self.places[groups.ranks(layout)])

    def column(
        self, plan: CommPlan, number: int, groups: Together | None, layout: ParallelLayout
    ) -> Column | None:
        """Return what one task loads in a phase of a plan; None where links are of one rank alone.

        Nor is it known for `groups` that are not.
        """
        if groups is None or plan.phases[number].link is not LinkKind.SCALE_OUT:
            return None
        key = self._key(groups, layout)
        whole = self._column(plan, number, key, self.places[groups.ranks(layout)])
        if groups.tasks == 1:
            return whole
        return self._columns.setdefault((id(whole), groups.tasks), whole.part(groups.tasks))

    def between(self, source: IntArray, target: IntArray) -> Column:
        """Return what messages of one byte between pairs of accelerators load."""
        return Column.of(self.routes.loads(source, target, np.ones(len(source))))

    def _everywhere(self, size: int, stride: int) -> IntArray:
        return self.places[members(np.arange(len(self.places)), size, stride)]

    def _key(self, groups: Together, layout: ParallelLayout) -> _Key:
        return groups, layout.tp * layout.cp, layout.dp

    def _limited(self, plan: CommPlan, key: _Key, accelerators: IntArray) -> CommPlan:
        phases = tuple(
            self._phase(plan, number, key, accelerators) for number in range(len(plan.phases))
        )
        return plan if phases == plan.phases else replace(plan, phases=phases)

    def _phase(self, plan: CommPlan, number: int, key: _Key, accelerators: IntArray) -> CommPhase:
        phase = plan.phases[number]
        if not phase.wire_bytes or phase.link is LinkKind.HOST:
            return phase
        if phase.link is LinkKind.SCALE_UP:
            if not self.joins_directly:
                return phase
            share = self._column(plan, number, key, accelerators).limit(self.capacity)
            rate = phase.rate * min(1.0, share / self.nominal)
        else:
            limit = self._column(plan, number, key, accelerators).limit(self.capacity)
            rate = min(phase.rate, limit)
        return phase if rate == phase.rate else replace(phase, rate=rate)

    def _column(self, plan: CommPlan, number: int, key: _Key, accelerators: IntArray) -> Column:
        link = plan.phases[number].link
        found_by = (*key, plan.collective, plan.algorithm, number, link)
        column = self._columns.get(found_by)
        if column is None:
            column = self._columns[found_by] = self._loads(plan, number, accelerators)
        return column

    def _loads(self, plan: CommPlan, number: int, accelerators: IntArray) -> Column:
        if plan.phases[number].link is LinkKind.SCALE_UP:
            return Column.of(self._inside_units(accelerators))
        pattern = ALGORITHMS[plan.algorithm].pattern
        traffic: Traffic = pattern(
            Members(accelerators=accelerators, domain=self._domain_of), number, plan
        )
        return Column.of(self.routes.loads(traffic.source, traffic.target, traffic.weight))

    def _inside_units(self, accelerators: IntArray) -> FloatArray:
        """Return the loads inside units of groups, each of them cut at scale-up domains."""
        teams = teams_of(accelerators, self._domain_of)
        loads = np.zeros(self.topology.links)
        for size in np.unique(teams.count):
            starts = teams.first[teams.count == size]
            if size > 1:
                loads += self.routes.mesh_loads(
                    teams.accelerators[starts[:, None] + np.arange(size)]
                )
        return loads


def _one_switch(topology: Topology) -> bool:
    """Whether the accelerators of a unit are equals on one switch, sound and all alike."""
    graph, accelerators = topology.unit.graph, topology.unit.accelerators
    changed = any(link < topology.first_up for link, _ in topology.changed)
    if changed or len(accelerators) == 1:
        return len(accelerators) == 1
    widest = [_widest(topology, accelerator) for accelerator in accelerators]
    rates = {float(graph.bandwidth[link]) for link in widest}
    return len({int(graph.target[link]) for link in widest}) == 1 == len(rates)


def _widest(topology: Topology, accelerator: int) -> int:
    """Return the widest link out of a device of a unit."""
    graph = topology.unit.graph
    links = np.flatnonzero(graph.source == accelerator)
    return int(links[np.argmax(graph.bandwidth[links])])
