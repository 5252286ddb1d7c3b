"""What is known of a section of layers as one rank sees it, looked up without comparing records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from simulator.parallel.segments import Section
from simulator.parallel.shard import Shard

Value = TypeVar("Value")


class SectionCache(Generic[Value]):
    """Values that depend on a shard and on a section: on its layers and the ends of the model.

    Shards and layers are told apart as objects: `Programs` has one for all that are equal. They are
    kept, so that no other ever takes the place of one.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, int, bool, bool, int], tuple[Shard, Section, Value]] = {}

    def get(self, shard: Shard, section: Section, make: Callable[[], Value]) -> Value:
        """Return the value, which `make` returns where it is not known."""
        ends = section.embedding, section.head
        key = (id(shard), id(section.layers), *ends, id(section.mtp))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = shard, section, make()
        return found[2]
