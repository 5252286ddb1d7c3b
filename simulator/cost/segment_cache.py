"""What is known of a segment of layers as one rank sees it, looked up without comparing records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from simulator.parallel.segments import Segment
from simulator.parallel.shard import Shard

Value = TypeVar("Value")


class SegmentCache(Generic[Value]):
    """Values that depend on a shard and on a segment's layers and ends, not on its parameters.

    Shards and layers are told apart as objects: `Programs` has one for all that are equal. They are
    kept, so that no other ever takes the place of one.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, int, bool, bool, int], tuple[Shard, Segment, Value]] = {}

    def get(self, shard: Shard, segment: Segment, make: Callable[[], Value]) -> Value:
        """Return the value, which `make` returns where it is not known."""
        ends = segment.embedding, segment.head
        key = (id(shard), id(segment.layers), *ends, id(segment.mtp))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = shard, segment, make()
        return found[2]
