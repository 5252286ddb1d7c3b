"""Links that are slower, faster or failed: which ones a file means, and the topology with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from simulator.errors import Problem
from simulator.files import nearest
from simulator.topology.network_file import ChangedLink
from simulator.topology.topology import Topology

_BOTH, _ONE_WAY = " <-> ", " -> "


def with_links(topology: Topology, bandwidth: Mapping[int, float]) -> Topology:
    """Return a topology in which some links have other bandwidths, bytes/s; 0 is a failed one."""
    changed = {**dict(topology.changed), **bandwidth}
    return replace(topology, changed=tuple(sorted(changed.items())))


def changed_links(
    topology: Topology, changes: Sequence[ChangedLink], where: str
) -> tuple[dict[int, float], list[Problem]]:
    """Return the new bandwidth in bytes/s of each link that changes, and what matches no link.

    Where changes name the same link the last one counts.
    """
    if not changes:
        return {}, []
    names = [topology.link_name(link) for link in range(topology.links)]
    found: dict[int, float] = {}
    problems: list[Problem] = []
    for number, change in enumerate(changes):
        patterns = _patterns(change.link)
        links = [i for i, name in enumerate(names) if any(fnmatchcase(name, p) for p in patterns)]
        found.update((link, _bandwidth(change, float(topology.capacity[link]))) for link in links)
        if not links:
            problems.append(
                Problem(
                    where=where,
                    key=f"cluster.network.changed.{number}.link",
                    found=repr(change.link),
                    rule="is no link; `traincast topology show` names them",
                    fix=nearest(change.link, names),
                )
            )
    return found, problems


def _patterns(link: str) -> tuple[str, ...]:
    """Return the patterns of names that a file's name stands for: "a <-> b" is both ways.

    >>> _patterns("node3/nic2 <-> leaf0")
    ('node3/nic2 -> leaf0', 'leaf0 -> node3/nic2')
    """
    if _BOTH not in link:
        return (link,)
    one, _, other = link.partition(_BOTH)
    return f"{one}{_ONE_WAY}{other}", f"{other}{_ONE_WAY}{one}"


def _bandwidth(change: ChangedLink, was: float) -> float:
    if change.failed:
        return 0.0
    if change.factor is not None:
        return was * change.factor
    assert change.bandwidth is not None, "one of the three is given"
    return float(change.bandwidth)
