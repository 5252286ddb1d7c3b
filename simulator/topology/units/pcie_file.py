"""The keys of a PCIe unit, and what must hold of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from simulator.errors import InputError, Problem
from simulator.files import FileRecord
from simulator.topology.checks import device_problems, tree_problems, unknown_problems
from simulator.topology.units.cards import Card
from simulator.units import Bandwidth, Seconds

Name = Annotated[str, Field(min_length=1, max_length=64)]


class PcieSwitchFile(FileRecord):
    """A PCIe switch."""

    name: Name
    """All different, and none that of a socket."""
    above: Name
    """The socket ("socket0") or switch that it hangs on."""
    accelerators: tuple[Card, ...] = ()
    """Those in its slots, from 0."""
    nics: tuple[Card, ...] = ()
    """Those in its slots, from 0."""
    bandwidth: Bandwidth | None = None
    """To what it hangs on, one direction; left out, as an accelerator's slot."""


class PcieFile(FileRecord):
    """Accelerators and NICs in PCIe slots: below switches, or straight below a socket.

    A socket and its host bridge are one device, that passes on all that its slots carry. What no
    switch lists is spread over the sockets in order, as evenly as it goes.
    """

    accelerators: int | None = Field(default=None, ge=1, le=1024)
    """Of one unit; left out, those of the profile's scale-up domain."""
    bandwidth: Bandwidth | None = None
    """An accelerator's slot, one direction; left out, the profile's from host to accelerator."""
    latency: Seconds | None = None
    """Accelerator to accelerator over one socket or switch; left out, the profile's. Each link of a
    longer way takes half of it."""
    nic_bandwidth: Bandwidth | None = None
    """A NIC's slot, one direction; left out, as an accelerator's, or the NIC's nominal rate where
    that is more."""
    sockets: int = Field(default=1, ge=1, le=16)
    """Each is joined to each other; their names are "socket0" and so on."""
    socket_bandwidth: Bandwidth | None = None
    """Between each two sockets (UPI, xGMI), one direction; needed where there are several."""
    switch: tuple[PcieSwitchFile, ...] = ()
    """Those below sockets, and those below them."""
    bridge: tuple[tuple[Card, Card], ...] = ()
    """Pairs of accelerators that a bridge joins directly (NVLink)."""
    bridge_bandwidth: Bandwidth | None = None
    """Of a bridge, one direction; needed where there is one."""
    affinity: tuple[Card, ...] | None = None
    """NIC of each accelerator, from 0; left out, the nearest in the tree."""


def socket_names(file: PcieFile) -> list[str]:
    """Return the names of the sockets."""
    return [f"socket{place}" for place in range(file.sockets)]


def check_pcie(file: PcieFile, accelerators: int, nics: int) -> None:
    """Check the lists of a PCIe unit of so many accelerators and NICs.

    Raises:
        InputError: with all that do not fit.
    """
    sockets, switches = socket_names(file), [switch.name for switch in file.switch]
    problems = device_problems({"unit.sockets": sockets, "unit.switch": switches})
    for place, switch in enumerate(file.switch):
        key = f"unit.switch[{place}]"
        problems += unknown_problems([*sockets, *switches], [switch.above], f"{key}.above")
    above = {switch.name: switch.above for switch in file.switch}
    problems += tree_problems(above, sockets, "unit.switch")
    problems += _slots(
        [switch.accelerators for switch in file.switch], "accelerators", accelerators
    )
    problems += _slots([switch.nics for switch in file.switch], "nics", nics)
    problems += [*_bridges(file, accelerators), *_needed(file)]
    if file.affinity is not None:
        problems += _affinity(file.affinity, accelerators, nics)
    if problems:
        raise InputError(*problems)


def _slots(lists: Sequence[tuple[int, ...]], name: str, count: int) -> Iterator[Problem]:
    """Yield numbers that there are not, and those in two slots."""
    counted = Counter(number for numbers in lists for number in numbers)
    for place, numbers in enumerate(lists):
        for number in numbers:
            key = f"unit.switch[{place}].{name}"
            if number >= count:
                yield _no_such(key, number, f"a unit has {count} {name}", count)
            if counted[number] > 1:
                rule = f"is in {counted[number]} slots; each has one"
                yield Problem(key=key, found=str(number), rule=rule, fix="list it once")


def _bridges(file: PcieFile, accelerators: int) -> Iterator[Problem]:
    laid: set[frozenset[int]] = set()
    for place, pair in enumerate(file.bridge):
        key = f"unit.bridge[{place}]"
        for number in pair:
            if number >= accelerators:
                rule = f"a unit has {accelerators} accelerators"
                yield _no_such(key, number, rule, accelerators)
        if pair[0] == pair[1]:
            yield Problem(key=key, found=str(list(pair)), rule="a bridge joins two accelerators")
        elif frozenset(pair) in laid:
            yield Problem(
                key=key,
                found=str(list(pair)),
                rule="these two have a bridge already",
                fix="write it once, with the bandwidth of both",
            )
        laid.add(frozenset(pair))


def _needed(file: PcieFile) -> Iterator[Problem]:
    for needed, value, key in (
        (file.sockets > 1, file.socket_bandwidth, "unit.socket_bandwidth"),
        (bool(file.bridge), file.bridge_bandwidth, "unit.bridge_bandwidth"),
    ):
        if needed and value is None:
            rule = "is needed: no profile says it"
            yield Problem(key=key, rule=rule, fix='write it, such as "41.6 GB/s"')


def _affinity(affinity: tuple[int, ...], accelerators: int, nics: int) -> Iterator[Problem]:
    if len(affinity) != accelerators:
        yield Problem(
            key="unit.affinity",
            found=f"{len(affinity)} entries",
            rule=f"has the NIC of each of the {accelerators} accelerators",
            fix="give one number for each, or leave the list out",
        )
    for place, number in enumerate(affinity):
        if number >= nics:
            yield _no_such(f"unit.affinity[{place}]", number, f"a unit has {nics} NICs", nics)


def _no_such(key: str, number: int, rule: str, count: int) -> Problem:
    fix = f"count from 0: the last is {count - 1}" if count else "leave it out"
    return Problem(key=key, found=str(number), rule=rule, fix=fix)
