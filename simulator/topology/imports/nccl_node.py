"""What has been read of a node of NCCL's XML, and which NIC each of its accelerators uses."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from simulator.errors import Problem
from simulator.topology.graph import Cable, DeviceKind
from simulator.topology.imports.link_rates import SWITCH
from simulator.topology.imports.nearest_nic import nearest_nics
from simulator.topology.imports.records import ImportedNic, ImportOptions, Note, at_line
from simulator.topology.imports.xml_tree import Element


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAccelerator:
    """An accelerator: its device, its element (that of its PCIe device), and its rank."""

    name: str
    element: Element
    pci: Element
    order: tuple[int, int]
    """Rank (or number of the device), then place in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNic:
    """A NIC and its number."""

    nic: ImportedNic
    order: tuple[int, int]

    @property
    def name(self) -> str:
        """The name of its device."""
        return self.nic.name


@dataclass(slots=True, kw_only=True)
class Node:
    """A node while its document is read."""

    where: str
    options: ImportOptions
    devices: dict[str, DeviceKind] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)
    accelerators: list[FoundAccelerator] = field(default_factory=list)
    nics: list[FoundNic] = field(default_factory=list)
    by_bus: dict[tuple[str, str], str] = field(default_factory=dict)
    """(prefix of the host, bus id) -> accelerator."""
    switches: dict[str, Element] = field(default_factory=dict)
    """PCIe switches by their device."""
    sockets: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    """Prefix of the host -> its NUMA nodes, and bytes/s of the way to others, one direction."""
    problems: list[Problem] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def add(self, name: str, kind: DeviceKind, element: Element) -> str:
        """Add a device; a name that is taken is a problem."""
        if name in self.devices:
            self.wrong(element, f"{name} is there already")
        self.devices[name] = kind
        return name

    def wrong(self, element: Element, rule: str, found: str = "", fix: str = "") -> None:
        """Add a problem of an element."""
        self.problems.append(at_line(self.where, element.line, rule, found=found[:60], fix=fix))

    def note(self, element: Element, text: str) -> None:
        """Add a note on an element."""
        self.notes.append(Note(line=element.line, text=text))

    def number(self, element: Element, key: str, default: int | None = None) -> int | None:
        """Return an attribute that is a whole number; a problem where it is something else."""
        text = element.get(key)
        if not text:
            return default
        try:
            return int(text, 0)
        except ValueError:
            self.wrong(element, f"{key} must be a whole number", found=repr(text))
            return default


def affinity(node: Node, accelerators: Sequence[str], nics: Sequence[str]) -> tuple[str, ...]:
    """Return the NIC of each accelerator: that with the fewest PCIe links on the way.

    NVLinks do not count: ways through other accelerators are no ways of one's own.
    """
    if not nics:
        return ()
    near: dict[str, list[str]] = {name: [] for name in node.devices}
    for cable in node.cables:
        near[cable.one].append(cable.other)
        near[cable.other].append(cable.one)
    far = []
    for accelerator in accelerators:
        hops = _hops(node, near, accelerator)
        far.append([hops.get(nic, len(node.devices)) for nic in nics])
    return tuple(nics[choice] for choice in nearest_nics(far))


def _hops(node: Node, near: dict[str, list[str]], start: str) -> dict[str, int]:
    hops, queue = {start: 0}, deque([start])
    while queue:
        here = queue.popleft()
        passable = here == start or node.devices[here] is not DeviceKind.ACCELERATOR
        for other in near[here] if passable and here != SWITCH else ():
            if other not in hops:
                hops[other] = hops[here] + 1
                queue.append(other)
    return hops
