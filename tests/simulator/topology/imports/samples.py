"""Outputs of other tools as texts, with the oddities that real ones have; all numbers are round."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from simulator.hardware.profile import Profile, load_profile
from simulator.topology.graph import DeviceKind
from simulator.topology.imports.formats import import_text
from simulator.topology.imports.records import Imported, ImportedUnit, ImportOptions

GB = 1e9
WHERE = "sample"
LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""


@cache
def profile(name: str) -> Profile:
    """Return a shipped profile; it is read once."""
    return load_profile(name)


def options(name: str | None = "dgx-h100", **more: object) -> ImportOptions:
    """Return options with a shipped profile, and 20 GB/s between sockets."""
    given: dict[str, object] = {"sockets": 20 * GB, **more}
    return ImportOptions(profile=None if name is None else profile(name), **given)  # type: ignore[arg-type]


def read(text: str, given: ImportOptions | None = None) -> Imported:
    """Return what a text says, with the options of a DGX H100."""
    return import_text(text, WHERE, given or options())


def unit_of(text: str, given: ImportOptions | None = None) -> ImportedUnit:
    """Return the node that a text describes."""
    unit = read(text, given).unit
    assert unit is not None
    return unit


def smi(
    accelerators: int,
    nics: int,
    cell: Callable[[str, str], str],
    domain: Callable[[int], str] = lambda _: "0",
    *,
    nic_name: str = "NIC{}",
    underlined: bool = True,
) -> str:
    """Return a table of `nvidia-smi topo -m`, set with tabs as the tool does."""
    names = [f"GPU{n}" for n in range(accelerators)] + [nic_name.format(n) for n in range(nics)]
    head = "\t".join(["", *names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    lines = [f"\x1b[4m{head}\x1b[0m" if underlined else head]
    for place, one in enumerate(names):
        cells = [" X " if one == other else cell(one, other) for other in names]
        behind = ["0-31,64-95", domain(place), "", "N/A"] if place < accelerators else ["", "", ""]
        lines.append("\t".join([one, *cells, *behind]))
    legend = "".join(f"  NIC{n}: mlx5_{n}\n" for n in range(nics))
    return "\n".join(lines) + "\n" + LEGEND + (f"\nNIC Legend:\n\n{legend}" if nics else "")


def capacity(unit: ImportedUnit, one: str, other: str) -> float:
    """Return bytes/s of the cables between two devices, 0 where there is none."""
    return sum(c.bandwidth for c in unit.cables if {c.one, c.other} == {one, other})


def way(
    unit: ImportedUnit, one: str, other: str, without: Sequence[str] = ("nvswitch",)
) -> list[str]:
    """Return the devices on a shortest way, through no accelerator and none of `without`."""
    kinds = dict(unit.devices)
    before: dict[str, str] = {one: ""}
    queue = deque([one])
    while queue:
        here = queue.popleft()
        if here != one and (kinds[here] is DeviceKind.ACCELERATOR or here in without):
            continue
        for cable in unit.cables:
            if here in (cable.one, cable.other):
                there = cable.other if here == cable.one else cable.one
                if there not in before:
                    before[there] = here
                    queue.append(there)
    path = [other]
    while path[-1] != one:
        path.append(before[path[-1]])
    return path[::-1]


def rows(folder: Path, name: str, text: str) -> Path:
    """Write a text to a file of a folder and return it."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
