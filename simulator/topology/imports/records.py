"""What an importer is told, and what it found."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.errors import Problem
from simulator.hardware.profile import Profile
from simulator.topology.graph import Cable, DeviceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What files do not say, and a user adds."""

    profile: Profile | None = None
    """The machine; its bandwidths stand where a file has none."""
    profile_name: str = ""
    """How the topology file names the profile, where that is not the profile's own name."""
    link: float | None = None
    """Bytes/s of one NVLink or xGMI link, one direction, instead of what the profile implies."""
    sockets: float | None = None
    """Bytes/s between two sockets (or NUMA nodes), one direction."""
    nics: tuple[str, ...] = ()
    """The cards that belong to the network; none: those nearest to accelerators."""
    oversubscription: float | None = None
    """Bandwidth into a switch over bandwidth out of it, instead of the profile's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What to know of an import: a choice that was made, or what was not understood."""

    text: str
    line: int | None = None
    """In the file, from 1."""

    def __str__(self) -> str:
        return self.text if self.line is None else f"line {self.line}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedNic:
    """A card of a node: its device, and what the file says of its line."""

    name: str
    bandwidth: float | None = None
    """Nominal, bytes/s, one direction; None where the file does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedUnit:
    """A node (or the nodes of one scale-up domain): devices and cables."""

    devices: tuple[tuple[str, DeviceKind], ...]
    cables: tuple[Cable, ...]
    accelerators: tuple[str, ...]
    """In the order of their local ranks."""
    nics: tuple[ImportedNic, ...]
    """Those that are plugged into the network."""
    affinity: tuple[str, ...]
    """(accelerators,) the NIC that each uses by itself; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plug:
    """The cable of one port of a node: bytes/s, one direction, and the switch at its other end."""

    node: str
    port: int
    switch: str
    bandwidth: float | None = None
    """None: what the NICs give."""
    latency: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFabric:
    """Switches, the cables between them, and the nodes that are plugged into them."""

    nodes: tuple[str, ...]
    """Names, in the order in which ranks fill them."""
    switches: tuple[str, ...]
    cables: tuple[Cable, ...]
    plugs: tuple[Plug, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What one file says: a unit, a fabric, or both."""

    where: str
    format: str
    unit: ImportedUnit | None = None
    fabric: ImportedFabric | None = None
    notes: tuple[Note, ...] = ()


def at_line(where: str, line: int, rule: str, *, found: str = "", fix: str = "") -> Problem:
    """Return a problem of one line of a file."""
    return Problem(where=where, key=f"line {line}", rule=rule, found=found, fix=fix)
