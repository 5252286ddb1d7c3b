"""The cluster of a scenario as it is: its network, where ranks stand, what is slow or failing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from simulator.cost.collectives.preferred import algorithm_problems
from simulator.cost.network.network import Network
from simulator.errors import InputError, Problem
from simulator.hardware.parts import KindArray, Part, kind_of_accelerators
from simulator.hardware.profile import Profile
from simulator.mixed_network import mixed_network_problems, with_own_nics
from simulator.parallel.layout import ParallelLayout, Placement
from simulator.scenario import Scenario
from simulator.storage import Storage, storage_of
from simulator.topology.build import topology_of_nodes, topology_of_profile
from simulator.topology.changes import changed_links, with_links
from simulator.topology.context import context_of
from simulator.topology.network_file import BackgroundTraffic, JitterFile, NetworkFile
from simulator.topology.places import places_of
from simulator.topology.routing import Router
from simulator.topology.topology import Topology
from simulator.topology.topology_file import read_topology


@dataclass(frozen=True, kw_only=True, eq=False)
class Conditions:
    """What a forecast must know of a cluster beside its profile; by default nothing is amiss."""

    network: Network | None = None
    """None: no fabric ever holds up a NIC, and ranks stand one after another."""
    background: tuple[BackgroundTraffic, ...] = ()
    storage: Storage | None = None
    """None: nothing is read or written."""
    slow: Mapping[int, float] = field(default_factory=dict)
    """Time of a rank's compute over that of the others."""
    jitter: JitterFile | None = None
    parts: tuple[Part, ...] = ()
    """Of a cluster of several kinds of machines, in node order; empty where all are of one."""

    @property
    def uniform(self) -> bool:
        """Whether all data-parallel replicas do the same at the same time."""
        return not self.slow and self.jitter is None and not self.parts

    @cached_property
    def kind_of_ranks(self) -> KindArray:
        """(world,) the number in `hardware.parts.kinds` of each rank's machine, of a mixed cluster.

        Ranks stand on the accelerators of the parts in their order, or where the network says.
        """
        kinds = kind_of_accelerators(self.parts)
        return kinds if self.network is None else kinds[self.network.places]


SOUND = Conditions()


def conditions_of(scenario: Scenario) -> Conditions:
    """Return the conditions of a scenario's cluster.

    Raises:
        InputError: with everything that is wrong in its network, placement or slow ranks.
    """
    cluster = scenario.file.cluster
    problems = list(_slow_problems(scenario))
    network = storage = None
    try:
        network = _network(scenario)
        storage = _storage(scenario, network)
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(*problems)
    return Conditions(
        network=network,
        background=cluster.network.background if cluster.network else (),
        storage=storage,
        slow={rank: each.factor for each in cluster.slow for rank in each.ranks},
        jitter=cluster.jitter,
        parts=scenario.parts if scenario.mixed else (),
    )


def estimate_notes(conditions: Conditions) -> tuple[str, ...]:
    """Return a warning where a closed-form estimate leaves out what the event run has.

    Links, whatever their bandwidth, are in both.
    """
    slow = len(conditions.slow)
    left_out = [f"{slow} slow rank{'' if slow == 1 else 's'}"] if slow else []
    left_out += ["jitter"] if conditions.jitter is not None else []
    left_out += ["the traffic of others"] if conditions.background else []
    if conditions.storage is not None and list(conditions.storage.traffic()):
        left_out.append("that of storage")
    if not left_out:
        return ()
    *first, last = left_out
    named = f"{', '.join(first)} and {last}" if first else last
    return (f"closed-form estimates leave out {named}; simulated steps have all of it",)


def network_notes(conditions: Conditions, layout: ParallelLayout) -> tuple[str, ...]:
    """Return a warning where collectives between passes are not taken over the network's links."""
    both_ways = layout.pipeline.placement is Placement.BIDIRECTIONAL
    if conditions.network is None or not both_ways or layout.dp == 1:
        return ()
    return (
        "[cluster.network]: gradients of dualpipe, which two stages reduce together, are not "
        "routed; they have the NIC share of a rank and meet nothing",
    )


def _network(scenario: Scenario) -> Network | None:
    """Return the network that the scenario describes, or its profile where that is not enough."""
    cluster, profile, parts = scenario.file.cluster, scenario.profile, scenario.parts
    file, nodes = cluster.network, sum(part.nodes for part in parts)
    if file is None:
        if nodes == 1 or all(part.profile.fabric.oversubscription == 1 for part in parts):
            return None
        file = NetworkFile()
    if scenario.mixed:
        described = file.topology is not None
        wrong = tuple(mixed_network_problems(parts, scenario.where, described=described))
        if wrong:
            raise InputError(*wrong)
    topology = _topology(file, profile, nodes)
    if scenario.mixed and file.topology is None:
        topology = with_own_nics(topology, parts)
    problems = [*_size_problems(scenario, topology), *_background_problems(scenario, file)]
    problems += algorithm_problems(
        file.algorithms,
        profile,
        where=scenario.where,
        key="cluster.network.algorithms",
        fabric_reduces=topology.fabric is not None and topology.fabric.reduces,
    )
    changes, unknown = changed_links(topology, file.changed, scenario.where)
    problems += unknown
    if problems:
        raise InputError(*problems)
    topology = with_links(topology, changes)
    return Network(
        topology=topology,
        routes=Router(
            topology,
            spreading=file.spreading,
            relay=file.relay,
            seed=file.seed,
            asked=(scenario.where, "cluster.network.changed" if changes else "cluster.network"),
        ),
        places=places_of(
            file.rank_order, topology, node_size=profile.node.accelerators
        ).accelerators,
        domain_size=min(profile.node.scale_up.domain_size, topology.width),
        nominal=profile.node.scale_up.bandwidth,
        algorithms=file.algorithms,
    )


def _storage(scenario: Scenario, network: Network | None) -> Storage | None:
    """Return what is read from storage and written to it.

    Raises:
        InputError: storage is nowhere, or asked for more than NICs carry.
    """
    file = scenario.file.cluster.network
    if file is None or network is None:
        return None
    size = scenario.profile.node.accelerators
    storage, problems = storage_of(file, network, size, scenario.where)
    if problems:
        raise InputError(*problems)
    return storage


def _topology(file: NetworkFile, profile: Profile, nodes: int) -> Topology:
    if file.topology is None:
        return topology_of_profile(profile, nodes)
    return topology_of_nodes(read_topology(file.topology), context_of(profile), nodes)


def _size_problems(scenario: Scenario, topology: Topology) -> Iterator[Problem]:
    if topology.size != scenario.world_size:
        yield Problem(
            where=scenario.where,
            key="cluster.network.topology",
            found=f"{topology.size} accelerators in {topology.units} units",
            rule=f"must be the {scenario.world_size} accelerators of cluster.nodes",
            fix="another number of nodes, or a topology of their size",
        )


def _slow_problems(scenario: Scenario) -> Iterator[Problem]:
    seen: set[int] = set()
    for number, each in enumerate(scenario.file.cluster.slow):
        for rank in each.ranks:
            rule = ""
            if rank >= scenario.world_size:
                rule = f"ranks are 0 to {scenario.world_size - 1}"
            elif rank in seen:
                rule = "a rank has one factor"
            seen.add(rank)
            if rule:
                yield Problem(
                    where=scenario.where,
                    key=f"cluster.slow.{number}.ranks",
                    found=f"rank {rank}",
                    rule=rule,
                    fix="leave it out",
                )


def _background_problems(scenario: Scenario, file: NetworkFile) -> Iterator[Problem]:
    for number, traffic in enumerate(file.background):
        wrong = sorted({a for a in (*traffic.source, *traffic.target) if a >= scenario.world_size})
        if wrong:
            yield Problem(
                where=scenario.where,
                key=f"cluster.network.background.{number}",
                found=f"accelerator {wrong[0]}",
                rule=f"accelerators are 0 to {scenario.world_size - 1}",
                fix=f"at most {scenario.world_size - 1}",
            )
