"""Which NIC each accelerator uses by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def nearest_nics(distances: Sequence[Sequence[int]]) -> list[int]:
    """Return the NIC of each accelerator: the nearest, and of equal ones the least used so far.

    `distances` is (accelerators, NICs). Accelerators choose in order, as in NCCL, where those that
    share their nearest NICs take turns (src/graph/topo.cc, ncclTopoGetLocalNet).

    >>> nearest_nics([[1, 1, 3, 3], [1, 1, 3, 3], [3, 3, 1, 1], [3, 3, 1, 1]])
    [0, 1, 2, 3]
    """
    used: Counter[int] = Counter()
    chosen = []
    for far in distances:
        choice = min(range(len(far)), key=lambda nic: (far[nic], used[nic], nic))
        used[choice] += 1
        chosen.append(choice)
    return chosen
