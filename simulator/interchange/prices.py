"""What the nodes of a trace cost: as the trace says, or on the machine of a profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from simulator.cost.collectives.select import CollectiveCosts
from simulator.cost.plan import CommPlan
from simulator.errors import InputError, Problem
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import Profile
from simulator.interchange.records import NodeKind, TraceNode, Workload, payload_of
from simulator.parallel.groups import Collective, GroupShape


def recorded_seconds(rank: int, node: TraceNode) -> float:  # noqa: ARG001
    """Return how long a node took as its trace says; a receive takes what its send takes."""
    return 0.0 if node.kind is NodeKind.RECEIVE else node.seconds


class ProfilePrices:
    """Prices the nodes of a workload on one machine; owns what it has priced already.

    Compute takes what the trace says, or, where it says nothing, its FLOP at the nominal peak of
    `precision`, which is less than it will take. What moves bytes takes what the profile says.
    Ranks fill scale-up domains in their order.
    """

    def __init__(self, workload: Workload, profile: Profile, precision: Dtype) -> None:
        """Raises `InputError` where the accelerator has no peak for `precision`."""
        self.workload = workload
        self.domain_size = profile.node.scale_up.domain_size
        self.peak = _peak(profile, precision)
        self.collectives = CollectiveCosts(profile, apart=True)
        self._shapes: dict[int, GroupShape] = {}
        self._known: dict[tuple[object, ...], float] = {}

    def seconds(self, rank: int, node: TraceNode) -> float:
        """Return how long a node of a rank takes, alone."""
        match node.kind:
            case NodeKind.COMPUTE:
                return node.seconds or node.flops / self.peak
            case NodeKind.RECEIVE | NodeKind.NOTHING:
                return 0.0
            case NodeKind.SEND:
                pair = group_of((rank, node.peer), self.domain_size)
                return self._priced(node, Collective.SEND_RECV, pair)
            case NodeKind.LOAD | NodeKind.STORE:
                return self._priced(node, Collective.HOST_COPY, _ALONE)
            case NodeKind.COLLECTIVE:
                assert node.collective is not None
                return self._priced(node, node.collective, self._shape(node.group))

    def _shape(self, group: int) -> GroupShape:
        found = self._shapes.get(group)
        if found is None:
            ranks = self.workload.members(group)
            found = self._shapes[group] = group_of(ranks, self.domain_size)
        return found

    def _priced(self, node: TraceNode, collective: Collective, group: GroupShape) -> float:
        key = (collective, group, node.size, node.algorithm, node.network_share)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._plan(node, collective, group).seconds
        return found

    def _plan(self, node: TraceNode, collective: Collective, group: GroupShape) -> CommPlan:
        try:
            return self.collectives.plan(
                collective,
                payload_of(node, group.size),
                group,
                algorithm=node.algorithm,
                network_share=node.network_share,
            )
        except InputError as error:
            if node.algorithm is None:
                raise
            where, key = self.workload.where, f"node {node.number} ({node.name}).algorithm"
            own = (replace(p, where=where, key=key, found=repr(p.where)) for p in error.problems)
            raise InputError(*own) from error


def group_of(ranks: Sequence[int], domain_size: int) -> GroupShape:
    """Return the shape of a group of some ranks, of which `domain_size` in a row share a domain.

    Where they do not spread evenly the largest even spread below is taken.

    >>> group_of((0, 1, 8, 9), 8)
    GroupShape(size=4, per_domain=2)
    >>> group_of((0, 1, 8), 8)
    GroupShape(size=3, per_domain=1)
    """
    fit = min(Counter(rank // domain_size for rank in ranks).values())
    size = len(ranks)
    return GroupShape(size=size, per_domain=next(n for n in range(fit, 0, -1) if size % n == 0))


_ALONE = GroupShape(size=1, per_domain=1)


def _peak(profile: Profile, precision: Dtype) -> float:
    peak = profile.accelerator.peak.get(precision)
    if peak is None:
        problem = Problem(
            where=profile.name,
            key="--precision",
            found=precision.value,
            rule="this accelerator has no peak for this precision",
            fix="one of: " + ", ".join(sorted(profile.accelerator.peak)),
        )
        raise InputError(problem)
    return float(peak)
