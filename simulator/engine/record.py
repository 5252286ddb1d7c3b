"""What each link carried when: rates that are constant between two changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """The load of one link over time: `rates[i]` bytes/s from `times[i]` to `times[i + 1]`."""

    times: tuple[float, ...]
    """Seconds, rising; the last one is where the last rate ends."""
    rates: tuple[float, ...]

    @property
    def bytes(self) -> float:
        """Bytes carried in all."""
        return float(np.dot(np.diff(self.times), self.rates))


class Recorder:
    """Owns what was carried, as pieces of constant rate in any order."""

    def __init__(self) -> None:
        self.pieces: dict[Hashable, list[tuple[float, float, float]]] = defaultdict(list)
        """Start and stop in seconds, and bytes/s, of all flows on each link."""

    def carry(self, link: Hashable, start: float, stop: float, rate: float) -> None:
        """Note that a flow put `rate` bytes/s on a link from `start` to `stop`."""
        if stop > start and rate > 0:
            self.pieces[link].append((start, stop, rate))

    def utilisation(self) -> dict[Hashable, Utilisation]:
        """Return the load of every link that carried anything, all flows together."""
        return {link: add_up(pieces) for link, pieces in self.pieces.items()}


def add_up(pieces: Sequence[tuple[float, float, float]]) -> Utilisation:
    """Return the sum of pieces of constant rate.

    >>> add_up([(0.0, 2.0, 5.0), (1.0, 3.0, 7.0)])
    Utilisation(times=(0.0, 1.0, 2.0, 3.0), rates=(5.0, 12.0, 7.0))
    """
    start, stop, rate = np.array(pieces, dtype=np.float64).T
    times, places = np.unique(np.concatenate([start, stop]), return_inverse=True)
    first, last = np.split(places, 2)
    change = np.zeros(len(times))
    flows = np.zeros(len(times), dtype=np.int64)
    np.add.at(change, first, rate)
    np.add.at(change, last, -rate)
    np.add.at(flows, first, 1)
    np.add.at(flows, last, -1)
    # Sums of rates that come and go leave rounding behind; where no flow is there is nothing.
    rates = np.where(np.cumsum(flows) > 0, np.cumsum(change), 0.0)[:-1]
    return Utilisation(times=tuple(times.tolist()), rates=tuple(rates.tolist()))
