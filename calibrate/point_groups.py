"""The group of a measured collective on a machine: its domains, and its share of the network."""

from __future__ import annotations

from calibrate.points import CollectivePoint, GroupKind
from simulator.hardware.profile import Profile
from simulator.parallel.groups import GroupShape


class UnpredictedError(Exception):
    """A point has no forecast; the text is its reason."""


def group_of(point: CollectivePoint, profile: Profile) -> GroupShape:
    """Return the group of a collective as the machine's scale-up domains cut it.

    Raises:
        UnpredictedError: its ranks do not divide over its nodes or domains.
    """
    domain, node = profile.node.scale_up.domain_size, profile.node.accelerators
    if point.ranks % point.nodes:
        raise UnpredictedError(f"{point.ranks} ranks do not divide over {point.nodes} nodes")
    each = point.ranks // point.nodes
    if point.nodes == 1 or (domain > node and point.ranks <= domain):
        each = point.ranks
    if each > domain and each % domain:
        raise UnpredictedError(f"{each} ranks of a node do not divide over domains of {domain}")
    return GroupShape(size=point.ranks, per_domain=min(each, domain))


def has_its_share(point: CollectivePoint, profile: Profile) -> bool:
    """Return whether each rank has the share of the NICs that it has when all ranks send.

    That is what the cost model takes for granted.
    """
    nic, ranks = profile.node.nic, profile.node.accelerators
    if point.group is GroupKind.HALVES or nic is None:
        return False
    own_nic = nic.per_node >= ranks
    whole = point.group is GroupKind.FIRST and point.ranks == point.nodes * ranks
    return own_nic or whole or point.group is GroupKind.RAILS
