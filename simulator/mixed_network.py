"""The network of a mixed cluster: one topology, in which each part has its own NICs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from simulator.errors import Problem
from simulator.hardware.parts import Part
from simulator.topology.changes import with_links
from simulator.topology.topology import Topology


def mixed_network_problems(
    parts: Sequence[Part], where: str, *, described: bool
) -> Iterator[Problem]:
    """Yield where nodes of a mixed cluster cannot be the equal units of one topology.

    Without a file the fabric is that of the first part's profile, which others must not contradict.
    """
    first = parts[0].profile
    for number, part in enumerate(parts[1:]):
        own, wanted = (p.fabric.oversubscription for p in (part.profile, first))
        if own != wanted and not described:
            yield Problem(
                where=where,
                key=f"cluster.part.{number}.profile",
                found=f"{part.profile.name}, oversubscribed {own:g}",
                rule=f"one fabric joins all parts, and that of {first.name} is {wanted:g}",
                fix="describe it: cluster.network.topology",
            )
        nic, other = part.profile.node.nic, first.node.nic
        shapes = (
            ("NICs a node", nic and nic.per_node, other and other.per_node),
            ("joined by", part.profile.node.scale_up.kind, first.node.scale_up.kind),
        )
        for what, given, needed in shapes:
            if given != needed:
                yield Problem(
                    where=where,
                    key=f"cluster.part.{number}.profile",
                    found=f"{part.profile.name}: {what} {given}",
                    rule="[cluster.network] has units that are all alike, and "
                    f"{first.name} has {needed}",
                    fix="leave [cluster.network] out: then no fabric holds up a NIC",
                )


def with_own_nics(topology: Topology, parts: Sequence[Part]) -> Topology:
    """Return a topology of the first part's profile in which each node's cables are its own NICs'.

    Cables between NICs and switches change by what a NIC of the part achieves over one of the
    first part, both ways; switches and the links between them stay.
    """
    if topology.fabric is None:
        return topology
    ends = list(accumulate(part.accelerators for part in parts))
    rates = [_nic_rate(part) for part in parts]
    changed: dict[int, float] = {}
    for unit in range(topology.units):
        part = next(n for n, end in enumerate(ends) if unit * topology.width < end)
        if rates[part] == rates[0]:
            continue
        for port in range(topology.port_count):
            up = topology.first_up + unit * topology.port_count + port
            rate = float(topology.capacity[up]) * rates[part] / rates[0]
            changed |= {up: rate, topology.opposite(up): rate}
    return with_links(topology, changed) if changed else topology


def _nic_rate(part: Part) -> float:
    """Return the bytes/s that large messages reach on one NIC of a part."""
    nic = part.profile.node.nic
    assert nic is not None, "checked with the parts"
    return float(nic.bandwidth * nic.efficiency)
