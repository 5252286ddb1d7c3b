"""Devices and the directed links that join them, as columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]


class DeviceKind(StrEnum):
    """What a device of a topology is."""

    ACCELERATOR = "accelerator"
    NIC = "nic"
    SWITCH = "switch"
    """Of any kind: NVSwitch, PCIe switch, leaf, spine, router of a torus or dragonfly."""
    HOST = "host"
    """A socket with its PCIe host bridge and memory."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Graph:
    """Devices by number, and directed links between them as parallel columns."""

    devices: tuple[str, ...]
    """Their names, all different."""
    kinds: tuple[DeviceKind, ...]
    source: IntArray
    """(links,) device at which each link begins."""
    target: IntArray
    """(links,) device at which it ends."""
    bandwidth: FloatArray
    """(links,) bytes/s, one direction."""
    latency: FloatArray
    """(links,) seconds of one message."""

    def __len__(self) -> int:
        return len(self.source)

    def link_name(self, link: int) -> str:
        """Return how a report names a link."""
        return f"{self.devices[self.source[link]]} -> {self.devices[self.target[link]]}"

    def of_kind(self, kind: DeviceKind) -> IntArray:
        """Return the numbers of all devices of a kind, in order."""
        return np.array([i for i, found in enumerate(self.kinds) if found is kind], dtype=np.intp)

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each device by its name."""
        return {name: number for number, name in enumerate(self.devices)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cable:
    """A full-duplex link between two devices: `bandwidth` bytes/s each way."""

    one: str
    other: str
    bandwidth: float
    latency: float = 0.0


def make_graph(devices: Iterable[tuple[str, DeviceKind]], cables: Iterable[Cable]) -> Graph:
    """Return the graph of devices joined by cables; each cable is two links, one each way.

    >>> graph = make_graph(
    ...     [("gpu0", DeviceKind.ACCELERATOR), ("switch", DeviceKind.SWITCH)],
    ...     [Cable(one="gpu0", other="switch", bandwidth=450e9)],
    ... )
    >>> [graph.link_name(link) for link in range(len(graph))]
    ['gpu0 -> switch', 'switch -> gpu0']
    """
    names, kinds = zip(*devices, strict=True)
    number = {name: place for place, name in enumerate(names)}
    assert len(number) == len(names), "names of devices differ"
    wires = list(cables)
    ends = [(number[wire.one], number[wire.other]) for wire in wires]
    return Graph(
        devices=names,
        kinds=kinds,
        source=np.array([end for one, other in ends for end in (one, other)], dtype=np.intp),
        target=np.array([end for one, other in ends for end in (other, one)], dtype=np.intp),
        bandwidth=np.repeat([wire.bandwidth for wire in wires], 2).astype(np.float64),
        latency=np.repeat([wire.latency for wire in wires], 2).astype(np.float64),
    )
