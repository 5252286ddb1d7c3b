"""The bytes that one collective puts on each link, as a sparse column over all links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.topology.graph import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """Links that a phase of a collective loads, and the bytes on each for each wire byte."""

    links: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, loads: FloatArray) -> Column:
        """Return the column of loads of all links."""
        links = np.flatnonzero(loads)
        return cls(links=links, weights=loads[links])

    def part(self, tasks: int) -> Column:
        """Return what each of some tasks loads that divide the bytes evenly."""
        return Column(links=self.links, weights=self.weights / tasks)

    def limit(self, capacity: FloatArray) -> float:
        """Return the rate in bytes/s at which the fullest link is full; inf where none is loaded.

        >>> column = Column.of(np.array([0.0, 2.0, 1.0]))
        >>> column.limit(np.array([1.0, 10.0, 4.0]))
        4.0
        """
        if not len(self.links):
            return float("inf")
        return float((capacity[self.links] / self.weights).min())
