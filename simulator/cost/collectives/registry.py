"""All collective algorithms by name; to add one, write its file and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulator.cost.collectives.all_pairs import all_pairs
from simulator.cost.collectives.all_to_all import (
    pairwise,
    pairwise_traffic,
    two_step,
    two_step_traffic,
)
from simulator.cost.collectives.binomial import binomial, binomial_traffic
from simulator.cost.collectives.chain import chain, chain_traffic
from simulator.cost.collectives.gloo import (
    gloo_broadcast,
    gloo_broadcast_traffic,
    gloo_reduce_scatter,
)
from simulator.cost.collectives.hierarchical import hierarchical, hierarchical_traffic
from simulator.cost.collectives.host_copy import host_copy, host_copy_traffic
from simulator.cost.collectives.nvls import nvls, nvls_traffic
from simulator.cost.collectives.parameter_server import (
    parameter_server,
    parameter_server_traffic,
)
from simulator.cost.collectives.pattern import Members, Pattern, Traffic
from simulator.cost.collectives.recursive_doubling import (
    recursive_doubling,
    recursive_doubling_traffic,
)
from simulator.cost.collectives.recursive_halving import (
    recursive_halving,
    recursive_halving_traffic,
)
from simulator.cost.collectives.request import Links, Request
from simulator.cost.collectives.ring import ring, ring_traffic
from simulator.cost.collectives.send_recv import direct, direct_traffic
from simulator.cost.collectives.sharp import sharp, sharp_traffic
from simulator.cost.collectives.torus import (
    has_grid,
    ring_bidirectional,
    ring_bidirectional_traffic,
    torus_2d,
    torus_2d_traffic,
)
from simulator.cost.collectives.tree import nvls_tree, tree, tree_traffic
from simulator.cost.plan import CommPlan
from simulator.parallel.groups import Collective, GroupShape


def _anywhere(group: GroupShape, links: Links) -> bool:  # noqa: ARG001
    return True


def _across_domains(group: GroupShape, links: Links) -> bool:  # noqa: ARG001
    return group.domains > 1


def _switch_reduces(group: GroupShape, links: Links) -> bool:
    nvls = links.constants.nvls
    return nvls is not None and links.in_network_reduction and group.per_domain >= nvls.min_ranks


def _one_switch(group: GroupShape, links: Links) -> bool:
    return group.domains == 1 and _switch_reduces(group, links)


def _several_switches(group: GroupShape, links: Links) -> bool:
    return group.domains > 1 and _switch_reduces(group, links)


def _fabric_reduces(group: GroupShape, links: Links) -> bool:
    return group.domains > 1 and links.fabric_reduces


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """One way to do some collectives on some group shapes."""

    build: Callable[[Request, Links], CommPlan]
    pattern: Pattern
    collectives: frozenset[Collective]
    serves: Callable[[GroupShape, Links], bool] = _anywhere
    """Whether it works on a group of more than one rank."""
    automatic: bool = True
    """Whether a library takes it unasked; the others must be named."""


_ALL_REDUCE = frozenset({Collective.ALL_REDUCE})
_ROOTED = frozenset({Collective.BROADCAST, Collective.REDUCE})
_RINGS = frozenset({Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER})

ALGORITHMS: dict[str, Algorithm] = {
    "ring": Algorithm(build=ring, pattern=ring_traffic, collectives=_RINGS),
    "tree": Algorithm(
        build=tree, pattern=tree_traffic, collectives=_ALL_REDUCE, serves=_across_domains
    ),
    "nvls": Algorithm(
        build=nvls, pattern=nvls_traffic, collectives=_ALL_REDUCE, serves=_one_switch
    ),
    "nvls_tree": Algorithm(
        build=nvls_tree, pattern=tree_traffic, collectives=_ALL_REDUCE, serves=_several_switches
    ),
    "hierarchical": Algorithm(
        build=hierarchical,
        pattern=hierarchical_traffic,
        collectives=_ALL_REDUCE,
        serves=_across_domains,
        automatic=False,
    ),
    "pairwise": Algorithm(
        build=pairwise, pattern=pairwise_traffic, collectives=frozenset({Collective.ALL_TO_ALL})
    ),
    "two_step": Algorithm(
        build=two_step,
        pattern=two_step_traffic,
        collectives=frozenset({Collective.ALL_TO_ALL}),
        serves=_across_domains,
        automatic=False,
    ),
    "chain": Algorithm(build=chain, pattern=chain_traffic, collectives=_ROOTED),
    "binomial": Algorithm(build=binomial, pattern=binomial_traffic, collectives=_ROOTED),
    "gloo_reduce_scatter": Algorithm(
        build=gloo_reduce_scatter,
        pattern=ring_traffic,
        collectives=frozenset({Collective.REDUCE_SCATTER}),
        automatic=False,
    ),
    "gloo_broadcast": Algorithm(
        build=gloo_broadcast,
        pattern=gloo_broadcast_traffic,
        collectives=frozenset({Collective.BROADCAST}),
        automatic=False,
    ),
    "direct": Algorithm(
        build=direct, pattern=direct_traffic, collectives=frozenset({Collective.SEND_RECV})
    ),
    "host_copy": Algorithm(
        build=host_copy, pattern=host_copy_traffic, collectives=frozenset({Collective.HOST_COPY})
    ),
    "parameter_server": Algorithm(
        build=parameter_server,
        pattern=parameter_server_traffic,
        collectives=_ALL_REDUCE,
        automatic=False,
    ),
    "recursive_doubling": Algorithm(
        build=recursive_doubling,
        pattern=recursive_doubling_traffic,
        collectives=frozenset({Collective.ALL_GATHER, Collective.ALL_REDUCE}),
        automatic=False,
    ),
    "recursive_halving": Algorithm(
        build=recursive_halving,
        pattern=recursive_halving_traffic,
        collectives=frozenset({Collective.REDUCE_SCATTER, Collective.ALL_REDUCE}),
        automatic=False,
    ),
    "all_pairs": Algorithm(
        build=all_pairs, pattern=pairwise_traffic, collectives=_RINGS, automatic=False
    ),
    "ring_bidirectional": Algorithm(
        build=ring_bidirectional,
        pattern=ring_bidirectional_traffic,
        collectives=_RINGS,
        automatic=False,
    ),
    "torus_2d": Algorithm(
        build=torus_2d,
        pattern=torus_2d_traffic,
        collectives=_ALL_REDUCE,
        serves=has_grid,
        automatic=False,
    ),
    "sharp": Algorithm(
        build=sharp,
        pattern=sharp_traffic,
        collectives=_ALL_REDUCE,
        serves=_fabric_reduces,
        automatic=False,
    ),
}


def traffic_of(plan: CommPlan, phase: int, members: Members) -> Traffic:
    """Return who sends how much to whom in a phase (by its number) of a plan."""
    return ALGORITHMS[plan.algorithm].pattern(members, phase, plan)
