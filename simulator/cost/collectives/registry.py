"""All collective algorithms by name; to add one, write its file and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulator.cost.collectives.all_to_all import pairwise, two_step
from simulator.cost.collectives.binomial import binomial
from simulator.cost.collectives.chain import chain
from simulator.cost.collectives.gloo import gloo_broadcast, gloo_reduce_scatter
from simulator.cost.collectives.hierarchical import hierarchical
from simulator.cost.collectives.host_copy import host_copy
from simulator.cost.collectives.nvls import nvls
from simulator.cost.collectives.parameter_server import parameter_server
from simulator.cost.collectives.request import Links, Request
from simulator.cost.collectives.ring import ring
from simulator.cost.collectives.send_recv import direct
from simulator.cost.collectives.tree import nvls_tree, tree
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """One way to do some collectives on some group shapes."""

    build: Callable[[Request, Links], CommPlan]
    collectives: frozenset[Collective]
    serves: Callable[[GroupShape, Links], bool] = _anywhere
    """Whether it works on a group of more than one rank."""
    automatic: bool = True
    """Whether a library takes it unasked; the others must be named."""


_ALL_REDUCE = frozenset({Collective.ALL_REDUCE})
_ROOTED = frozenset({Collective.BROADCAST, Collective.REDUCE})
_RINGS = frozenset({Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER})

ALGORITHMS: dict[str, Algorithm] = {
    "ring": Algorithm(build=ring, collectives=_RINGS),
    "tree": Algorithm(build=tree, collectives=_ALL_REDUCE, serves=_across_domains),
    "nvls": Algorithm(build=nvls, collectives=_ALL_REDUCE, serves=_one_switch),
    "nvls_tree": Algorithm(build=nvls_tree, collectives=_ALL_REDUCE, serves=_several_switches),
    "hierarchical": Algorithm(
        build=hierarchical, collectives=_ALL_REDUCE, serves=_across_domains, automatic=False
    ),
    "pairwise": Algorithm(build=pairwise, collectives=frozenset({Collective.ALL_TO_ALL})),
    "two_step": Algorithm(
        build=two_step,
        collectives=frozenset({Collective.ALL_TO_ALL}),
        serves=_across_domains,
        automatic=False,
    ),
    "chain": Algorithm(build=chain, collectives=_ROOTED),
    "binomial": Algorithm(build=binomial, collectives=_ROOTED),
    "gloo_reduce_scatter": Algorithm(
        build=gloo_reduce_scatter,
        collectives=frozenset({Collective.REDUCE_SCATTER}),
        automatic=False,
    ),
    "gloo_broadcast": Algorithm(
        build=gloo_broadcast, collectives=frozenset({Collective.BROADCAST}), automatic=False
    ),
    "direct": Algorithm(build=direct, collectives=frozenset({Collective.SEND_RECV})),
    "host_copy": Algorithm(build=host_copy, collectives=frozenset({Collective.HOST_COPY})),
    "parameter_server": Algorithm(build=parameter_server, collectives=_ALL_REDUCE, automatic=False),
}
