"""Which points run out of memory when a smaller one has: families of points, and their size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calibrate.points import (
    AttentionPoint,
    CollectivePoint,
    GemmPoint,
    HostCopyPoint,
    InterferencePoint,
    LayerPoint,
    MemoryBoundPoint,
    Point,
    StepPoint,
)


def is_larger(point: Point, than: Point) -> bool:
    """Return whether a point is of the same family and needs at least as much memory.

    >>> from calibrate.points import Direction
    >>> small = HostCopyPoint(direction=Direction.TO_HOST, bytes=1e6)
    >>> is_larger(small.model_copy(update={"bytes": 1e9}), than=small)
    True
    >>> is_larger(small.model_copy(update={"direction": Direction.TO_DEVICE}), than=small)
    False
    """
    rule = _RULES.get(type(point))
    if rule is None or type(point) is not type(than):
        return False
    same = point.model_dump(exclude=rule.sizes) == than.model_dump(exclude=rule.sizes)
    return same and rule.size(point) >= rule.size(than)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """Points that differ only in the fields `sizes` are one family."""

    sizes: Any
    """As pydantic's `exclude` takes them."""
    size: Callable[[Any], float]
    """Grows with the memory of a point; unit of the family's own."""


_RULES: dict[type, _Rule] = {
    GemmPoint: _Rule(
        sizes={"m", "n", "k", "layout"}, size=lambda p: p.m * p.k + p.k * p.n + p.m * p.n
    ),
    AttentionPoint: _Rule(
        sizes={"batch", "seq", "heads", "kv_heads"},
        size=lambda p: p.batch * p.seq * (p.heads + p.kv_heads),
    ),
    MemoryBoundPoint: _Rule(sizes={"bytes"}, size=lambda p: p.bytes),
    HostCopyPoint: _Rule(sizes={"bytes"}, size=lambda p: p.bytes),
    CollectivePoint: _Rule(sizes={"bytes"}, size=lambda p: p.bytes),
    InterferencePoint: _Rule(sizes={"bytes"}, size=lambda p: p.bytes),
    LayerPoint: _Rule(sizes={"micro_batch"}, size=lambda p: p.micro_batch),
    StepPoint: _Rule(
        sizes={"layers": True, "layout": {"micro_batch_size"}, "job": {"global_batch_size"}},
        size=lambda p: (p.layers or float("inf")) * p.layout.micro_batch_size,
    ),
}
"""Of the others, none is larger than another."""
