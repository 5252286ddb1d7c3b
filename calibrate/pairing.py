"""Which pairs of ranks to try in order to find a slow link."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations


def pairs_to_try(ranks: int, all_up_to: int) -> list[tuple[int, int]]:
    """Return every pair of few ranks; of many, neighbours on a ring and matchings at a distance.

    At distance n / 2, n / 4, ... every rank is in one pair, so that each link is met in as many
    pairs as there are distances, with another peer in each: a slow rank is slow in all of them, a
    slow link between two halves only at its distance.

    >>> pairs_to_try(3, 4)
    [(0, 1), (0, 2), (1, 2)]
    >>> pairs_to_try(4, 2)
    [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3)]
    """
    if ranks <= all_up_to:
        return list(combinations(range(ranks), 2))
    ring = [(rank, rank + 1) for rank in range(ranks - 1)]
    return list(dict.fromkeys([*ring, (0, ranks - 1), *_matchings(ranks)]))


def _matchings(ranks: int) -> Iterator[tuple[int, int]]:
    """Yield pairs at distances of halves, quarters, ... down to two."""
    distance = ranks // 2
    while distance > 1:
        for rank in range(ranks - distance):
            if rank // distance % 2 == 0:
                yield rank, rank + distance
        distance //= 2
