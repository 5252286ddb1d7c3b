"""The sections of a plan file that need several ranks: collectives, pairs, interference."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from calibrate.points import Timing
from simulator.files import FileRecord
from simulator.parallel.groups import Collective
from simulator.units import GB, KIB, MIB, Bandwidth, Bytes
from simulator.workload.stack_choices import KernelClass

MOST_COUNT = 2**30
"""Of any size in a plan; no tensor has a longer side."""
MOST_POINTS = 10_000
"""Of one section; more take days."""
_Count = Annotated[int, Field(ge=1, le=MOST_COUNT)]
_Size = Annotated[Bytes, Field(gt=0)]


class Members(StrEnum):
    """Which ranks a collective is measured over."""

    PAIR = "2"
    """Two ranks of a node."""
    FOUR = "4"
    """Four ranks of a node."""
    NODE = "node"
    """All ranks of a node."""
    ONE_A_NODE = "one_a_node"
    ALL = "all"
    """All ranks of several nodes."""
    HALVES = "halves"
    """Both halves of several nodes at once."""
    RAILS = "rails"
    """One group a local rank, all at once, over several nodes."""


class CollectivePlan(FileRecord):
    """Collectives; groups that the world does not have are left out."""

    operations: tuple[Collective, ...] = (
        Collective.ALL_REDUCE,
        Collective.ALL_GATHER,
        Collective.REDUCE_SCATTER,
        Collective.ALL_TO_ALL,
        Collective.BROADCAST,
        Collective.SEND_RECV,
    )
    """The most valuable first."""
    members: tuple[Members, ...] = tuple(Members)
    """Likewise."""
    least: _Size = 1 * KIB
    most: Bytes = 4 * GB
    """On accelerators; no more than fits."""
    cpu_most: Bytes = 8 * MIB
    """Where ranks are CPUs."""
    factor: int = Field(default=4, ge=2, le=MOST_COUNT)
    between: int = Field(default=0, ge=0, le=MOST_POINTS)
    """Sizes between two of those, later in the plan."""
    timing: tuple[Timing, ...] = (Timing.DEVICE,)
    """The first for all; the others later in the plan. Ranks that are CPUs time calls alone where
    this says "device": one call of theirs runs into the next, and none is launched beforehand."""
    nccl_choice: bool = True
    """Whether NCCL writes down which algorithm and protocol it takes, a line a call that rank 0
    launches outside a graph. Only where no NCCL_DEBUG is set, and in workers that measure nothing
    but collectives, so that neither launch costs nor steps hold it; false keeps those lines out of
    the timing of small collectives too."""
    expected: Bandwidth = Field(default=5 * GB, gt=0)
    """Of a link: only to say beforehand how long measuring takes."""


class ApartPlan(FileRecord):
    """Two ranks that each start at their own time, as in a training step."""

    operations: tuple[Collective, ...] = (Collective.ALL_GATHER, Collective.ALL_TO_ALL)
    """Those in which both ranks send and receive at the same time."""
    bytes: tuple[_Size, ...] = (16 * MIB, 64 * MIB, 256 * MIB)
    """Large ones, where the wire takes nearly all of the time."""
    cpu_bytes: tuple[_Size, ...] = (256 * KIB, MIB)
    """Where ranks are CPUs."""


class PairPlan(FileRecord):
    """Send and receive between pairs of ranks, to find slow links."""

    bytes: _Size = 16 * MIB
    cpu_bytes: _Size = MIB
    """Where ranks are CPUs."""
    all_up_to: _Count = 16
    """Ranks up to which every pair is measured; of more, neighbours and halving distances."""


class InterferencePlan(FileRecord):
    """Kernels and collectives at the same time."""

    kernels: tuple[KernelClass, ...] = tuple(KernelClass)
    operations: tuple[Collective, ...] = (Collective.ALL_REDUCE,)
    bytes: tuple[_Size, ...] = (64 * MIB,)
    cpu_bytes: tuple[_Size, ...] = (MIB,)
    """Where ranks are CPUs."""
