"""The matrix that says how near each device of a node is to each other one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Distance(IntEnum):
    """How two devices reach each other over PCIe, from near to far.

    Source: the legend of `nvidia-smi topo -m`; NVML's nvmlGpuTopologyLevel_t.
    """

    PIX = 1
    """At most a single PCIe bridge."""
    PXB = 2
    """Several PCIe bridges, no host bridge."""
    PHB = 3
    """A PCIe host bridge."""
    NODE = 4
    """Host bridges of one NUMA node."""
    SYS = 5
    """The interconnect between NUMA nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Devices of a node, and what joins each pair; pairs are (lower, higher) places."""

    names: tuple[str, ...]
    accelerators: int
    """The first devices are accelerators, the others NICs."""
    distances: dict[tuple[int, int], Distance]
    """Of pairs whose way over PCIe the file gives."""
    links: dict[tuple[int, int], int]
    """NVLinks (or xGMI links) of pairs that have some."""
    domains: dict[int, str]
    """NUMA affinity of accelerators, where the file gives it."""

    def distance(self, one: int, other: int) -> Distance | None:
        """Return how far two devices are apart, or None where the file does not say."""
        return self.distances.get((min(one, other), max(one, other)))

    def row(self, accelerator: int) -> int:
        """Return the links of an accelerator that the file counts, to all its peers together."""
        return sum(count for pair, count in self.links.items() if accelerator in pair)
