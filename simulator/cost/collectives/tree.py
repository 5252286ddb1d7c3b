"""Double-binary-tree all-reduce over several domains, with a chain or the switch inside each."""

from __future__ import annotations

from simulator.cost.collectives.nvls import nvls_seconds
from simulator.cost.collectives.pattern import Members, Traffic, between_domains
from simulator.cost.collectives.request import Links, Request, across, network_latency
from simulator.cost.collectives.ring import ring_latency, scale_up_seconds
from simulator.cost.collectives.schemes import double_tree_scheme
from simulator.cost.plan import CommPlan
from simulator.parallel.groups import GroupShape

_PAIR = 2


def tree(request: Request, links: Links) -> CommPlan:
    """Return the plan of a chain in each domain and two binary trees over the domains.

    Inside a domain each rank passes `2 s` bytes on, up and down the chain. Chain and trees are
    pipelined: latencies add, the slower link decides.

    Source: NCCL 2.4 announcement (double binary trees); `tree_bytes`.
    """
    group, constants = request.group, links.constants.all_reduce
    steps = 2.0 * (group.per_domain - 1)
    wire = 2.0 * request.payload if group.per_domain > 1 else 0.0
    nic_bytes = tree_bytes(request.payload, group)
    fixed = ring_latency(constants, steps, wire)
    fixed += network_latency(links, tree_hops(group), nic_bytes)
    inside = scale_up_seconds(constants, links.bandwidth, wire, 0.0)
    return request.plan("tree", across(links, fixed, nic_bytes, inside))


def nvls_tree(request: Request, links: Links) -> CommPlan:
    """Return the plan of a reduction in the switch of each domain and trees over the domains.

    Source: NCCL 2.18 release notes (NVLSTree); `nvls_seconds`, `tree_bytes`.
    """
    group, nvls = request.group, links.constants.nvls
    assert nvls is not None, "the registry offers it only where there are constants"
    nic_bytes = tree_bytes(request.payload, group)
    fixed = nvls.start + network_latency(links, tree_hops(group), nic_bytes)
    inside = nvls_seconds(nvls, links.bandwidth, request.payload, group.per_domain)
    return request.plan("nvls_tree", across(links, fixed, nic_bytes, inside))


def tree_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:  # noqa: ARG001
    """Return the messages of both trees: each edge carries `s/2` up and `s/2` down.

    Slot by slot, as many channels as ranks a domain share them. The busiest domain sends
    `tree_bytes`, but of three: there no domain has more than three edges, and it sends 3/4 of them.
    """
    edge = 0.5 / tree_bytes(1.0, plan.group)
    return between_domains(members, double_tree_scheme).times(edge)


def tree_hops(group: GroupShape) -> float:
    """Return the messages in sequence from the leaves to the root and back: `2 ceil(log2 N)`."""
    return 2.0 * (group.domains - 1).bit_length()


def tree_bytes(payload: float, group: GroupShape) -> float:
    """Return the bytes that the busiest domain sends into the network, per rank of it.

    Each of the two trees carries half of the `s` bytes. A domain is a leaf in one (sends `s/2` up)
    and inside the other (sends `s/2` up and `s/2` to each of two children): `2 s`. Of two domains
    each is the root of one tree and the leaf of the other: `s`.
    """
    return payload * (1.0 if group.domains == _PAIR else 2.0) / group.per_domain
