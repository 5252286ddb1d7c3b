"""Compute and communication on one GPU at the same time: each runs slower than alone.

Collectives take compute units and memory bandwidth from kernels, and wait for both themselves:
while the two run together, compute takes k times as long as alone and communication m times.
Source of the effect: Rashidi et al. 2021, "Enabling Compute-Communication Overlap in Distributed
Deep Learning Training Platforms", section 3; of k and m: the stack's file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from simulator.results import Category
from simulator.workload.operator import FlashAttention, Gemm, MemoryBound, Operator
from simulator.workload.stack import Overlap
from simulator.workload.stack_choices import KernelClass

_CLASSES = {
    Category.GEMM: KernelClass.GEMM,
    Category.ATTENTION: KernelClass.ATTENTION,
    Category.MEMORY_BOUND: KernelClass.MEMORY_BOUND,
    Category.OPTIMIZER: KernelClass.MEMORY_BOUND,
}
_SAME_AS_REST = (Category.RECOMPUTE,)
"""Compute of all classes, in about the same parts as the pass that it belongs to."""


def exposed_seconds(
    comm: float, window: float, share: float, compute_slowdown: float, comm_slowdown: float
) -> float:
    """Return the seconds by which a collective makes a block longer than its compute.

    `comm` and `window` are what the collective and the compute beside it take alone. Together they
    run until one ends, for a time d: compute then needs k w and communication m c, so that
    d = min(k w, m c). In it d / k of the compute and d / m of the collective get done; what is left
    of either takes as long as alone:
        total = d + (w - d / k) + (c - d / m),   exposed = total - w = c + d (1 - 1/k - 1/m).
    Of that time only `share` is spent together. Without interference it is c - share min(w, c);
    above c where running together is slower than in turn.

    >>> exposed_seconds(3.0, 2.0, 1.0, 1.0, 1.0)
    1.0
    >>> exposed_seconds(3.0, 8.0, 1.0, 2.0, 2.0)  # 6 s together, in which 3 s of compute get done
    3.0
    """
    together = share * min(compute_slowdown * window, comm_slowdown * comm)
    return comm + together * (1 - 1 / compute_slowdown - 1 / comm_slowdown)


def operator_slowdown(operator: Operator, overlap: Overlap) -> float:
    """Return k of one operator."""
    match operator:
        case Gemm():
            kind = KernelClass.GEMM
        case FlashAttention():
            kind = KernelClass.ATTENTION
        case MemoryBound():
            kind = KernelClass.MEMORY_BOUND
        case _:
            assert_never(operator)
    return overlap.compute_slowdown.get(kind, 1.0)


def mean_slowdown(parts: Mapping[Category, float], overlap: Overlap) -> float:
    """Return k of a pass that takes `parts` seconds of each category, their mean by time.

    What is no compute, such as exposed collectives inside the pass, is not slowed.
    """
    known = {c: s for c, s in parts.items() if c not in _SAME_AS_REST}
    whole = sum(known.values())
    if not whole:
        return 1.0
    slowdowns = (s * _slowdown_of(category, overlap) for category, s in known.items())
    return sum(slowdowns) / whole


def interferes(overlap: Overlap) -> bool:
    """Whether compute and communication slow each other at all."""
    return overlap.comm_slowdown > 1 or any(k > 1 for k in overlap.compute_slowdown.values())


def _slowdown_of(category: Category, overlap: Overlap) -> float:
    kind = _CLASSES.get(category)
    return 1.0 if kind is None else overlap.compute_slowdown.get(kind, 1.0)
