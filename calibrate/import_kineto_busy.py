"""What the work of a step takes whether something hides it or not: by class, and by collective."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from calibrate.import_kineto_kernels import nccl_kernel
from calibrate.import_kineto_operators import Slice

UNNAMED = "other"
"""A kernel of a communication library whose name does not say which collective it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveUse:
    """All calls of one collective for one purpose in a step."""

    collective: str
    """As nccl-tests names it."""
    label: str
    """Its class: what it is for."""
    calls: int
    busy: float
    """Seconds in which at least one of them runs."""
    exposed: float
    """Seconds of them that nothing hides."""


def busy_seconds(slices: Iterable[Slice]) -> dict[str, float]:
    """Return for each class the seconds in which any of its work runs."""
    by_label: defaultdict[str, list[Slice]] = defaultdict(list)
    for each in slices:
        by_label[each.label].append(each)
    return {label: _union(own) for label, own in by_label.items()}


def collective_uses(
    slices: Iterable[Slice], exposed: Mapping[tuple[str, str], float]
) -> tuple[CollectiveUse, ...]:
    """Return the collectives of a step, the longest first; `exposed` is by class and kernel."""
    calls: defaultdict[tuple[str, str], list[Slice]] = defaultdict(list)
    for each in slices:
        if each.communicates:
            calls[each.label, collective_name(each.name)].append(each)
    shown: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (label, name), seconds in exposed.items():
        shown[label, collective_name(name)] += seconds
    found = [
        CollectiveUse(
            collective=collective,
            label=label,
            calls=len(own),
            busy=_union(own),
            exposed=shown[label, collective],
        )
        for (label, collective), own in calls.items()
    ]
    return tuple(sorted(found, key=lambda use: (-use.busy, use.label, use.collective)))


def collective_name(kernel: str) -> str:
    """Return what a communication kernel does, as nccl-tests calls it.

    >>> collective_name("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")
    'sendrecv'
    """
    found = nccl_kernel(kernel)
    return UNNAMED if found is None or found.collective is None else str(found.collective)


def _union(slices: Iterable[Slice]) -> float:
    """Return the seconds in which at least one of some slices, given by start, runs."""
    total, until = 0.0, float("-inf")
    for each in slices:
        if each.stop > until:
            total += each.stop - max(each.start, until)
            until = each.stop
    return total
