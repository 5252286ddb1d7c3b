"""What must hold of devices and cables: each rule returns all that break it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from simulator.errors import InputError, Problem
from simulator.files import nearest
from simulator.topology.graph import Cable, IntArray
from simulator.topology.topology import Topology
from simulator.topology.whole import device_count, device_name, in_units, link_ends

_SHOWN = 4
"""Names that a message shows of a longer list."""


def check_topology(topology: Topology) -> None:
    """Check that every link has a capacity, and that accelerators and ports reach each other.

    Raises:
        InputError: with what breaks it.
    """
    problems = capacity_problems(topology) or reach_problems(topology)
    if problems:
        raise InputError(*problems)


def device_problems(lists: Mapping[str, Sequence[str]]) -> list[Problem]:
    """Return devices that are named twice; `lists` has their names by the key of the list."""
    counted = Counter(name for names in lists.values() for name in names)
    return [
        Problem(
            key=key,
            found=repr(name),
            rule=f"this device is named {counted[name]} times; each has one name",
            fix="give each device its own name",
        )
        for key, names in lists.items()
        for name in dict.fromkeys(names)
        if counted[name] > 1
    ]


def cable_problems(devices: Iterable[str], cables: Sequence[Cable], key: str) -> list[Problem]:
    """Return cables to devices that do not exist, to the same device, and laid twice."""
    known = dict.fromkeys(devices)
    problems = []
    laid: dict[frozenset[str], int] = {}
    for place, cable in enumerate(cables):
        here = f"{key}[{place}]"
        ends = [name for name in (cable.one, cable.other) if name not in known]
        problems += unknown_problems(known, ends, here) if ends else []
        pair = frozenset((cable.one, cable.other))
        if len(pair) == 1:
            problems.append(_loop(here, cable))
        elif pair in laid:
            problems.append(_laid_twice(here, cable, f"{key}[{laid[pair]}]"))
        laid.setdefault(pair, place)
    return problems


def unknown_problems(known: Iterable[str], names: Iterable[str], key: str) -> list[Problem]:
    """Return names that no device has."""
    choices = list(known)
    return [
        Problem(key=key, found=repr(name), rule="no such device", fix=nearest(name, choices))
        for name in names
        if name not in choices
    ]


def port_problems(ports: Sequence[str], key: str) -> list[Problem]:
    """Return ports that are plugged in more than once."""
    return [
        Problem(
            key=key,
            found=repr(port),
            rule=f"this port is plugged in {count} times; a port takes one cable",
            fix="name another port, or leave one of them out",
        )
        for port, count in Counter(ports).items()
        if count > 1
    ]


def tree_problems(above: Mapping[str, str], roots: Iterable[str], key: str) -> list[Problem]:
    """Return devices from which the way up comes back to where it was.

    `above` has what each device hangs on; `roots` hang on nothing.
    """
    ends = set(roots)
    problems = []
    for name in above:
        way = [name]
        while way[-1] in above and way[-1] not in ends and above[way[-1]] not in way:
            way.append(above[way[-1]])
        if above.get(way[-1]) == name:
            problems.append(
                Problem(
                    key=key,
                    found=" -> ".join([*way, name]),
                    rule="the way up goes round in a circle; a tree ends at a root",
                    fix=f"hang one of them below {' or '.join(sorted(ends))}",
                )
            )
    return problems


def capacity_problems(topology: Topology) -> list[Problem]:
    """Return links that carry nothing (those marked as failed, and at failed switches, may)."""
    failed = {link for link, bandwidth in topology.changed if bandwidth == 0}
    failed |= _dark_ports(topology)
    silent = 2 * topology.units * topology.port_count if topology.fabric is None else 0
    last = topology.links - silent
    return [
        Problem(
            key=topology.link_name(int(link)),
            found=f"{topology.capacity[link]:g} bytes/s",
            rule="a link has a bandwidth greater than 0",
            fix="give it one, or leave the cable out",
        )
        for link in np.flatnonzero(~(topology.capacity[:last] > 0))
        if int(link) not in failed
    ]


def _dark_ports(topology: Topology) -> set[int]:
    """Return the links of ports that are plugged into a switch that has failed."""
    if topology.fabric is None:
        return set()
    dark = np.flatnonzero(topology.fabric.port_bandwidth.ravel() == 0)
    return {*(topology.first_up + dark).tolist(), *(topology.first_down + dark).tolist()}


def reach_problems(topology: Topology) -> list[Problem]:
    """Return accelerators and ports that nothing joins to the first accelerator."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    source, target = link_ends(topology)
    alive = topology.capacity > 0
    count = device_count(topology)
    edges = (np.ones(int(alive.sum())), (source[alive], target[alive]))
    _, island = connected_components(coo_array(edges, shape=(count, count)), connection="strong")
    first = in_units(topology, topology.unit.accelerators).ravel()
    ports = in_units(topology, topology.unit.ports).ravel()
    found = []
    for what, devices in (("accelerators", first), ("ports", ports)):
        lost = devices[island[devices] != island[first[0]]]
        if len(lost):
            found.append(_unreachable(topology, what, lost, int(first[0])))
    return found


def _unreachable(topology: Topology, what: str, lost: IntArray, first: int) -> Problem:
    names = [device_name(topology, int(device)) for device in lost[:_SHOWN]]
    more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
    return Problem(
        key="unit" if topology.fabric is None or topology.units == 1 else "fabric",
        found=", ".join(names) + more,
        rule=f"nothing joins these {what} ({len(lost)}) to {device_name(topology, first)}",
        fix="add the cables that join them, or leave the devices out",
    )


def _loop(key: str, cable: Cable) -> Problem:
    return Problem(
        key=key,
        found=repr(cable.one),
        rule="a cable joins two different devices",
        fix="name another device at one of its ends",
    )


def _laid_twice(key: str, cable: Cable, other: str) -> Problem:
    return Problem(
        key=key,
        found=f"{cable.one} - {cable.other}",
        rule=f"the same two devices as {other}",
        fix="write one cable with the bandwidth of both",
    )
