"""Rules of the lists in a scenario file: how many entries, and each of them once."""

from __future__ import annotations

from collections import Counter
from typing import Any


def each_once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a list as it is.

    Raises:
        ValueError: it names an entry twice, which would only be counted twice.

    >>> each_once((2, 4, 2))
    Traceback (most recent call last):
    ...
    ValueError: must name each entry once, and has 2 (2 times)
    """
    counts = Counter(values).items()
    again = [f"{value} ({count} times)" for value, count in counts if count > 1]
    if again:
        raise ValueError(f"must name each entry once, and has {', '.join(again)}")
    return values


def at_most(values: tuple[Any, ...], most: int) -> tuple[Any, ...]:
    """Return a list as it is.

    Raises:
        ValueError: it has more than `most` entries.

    >>> at_most((1, 2, 3), 2)
    Traceback (most recent call last):
    ...
    ValueError: must have at most 2 entries, and has 3
    """
    if len(values) > most:
        raise ValueError(f"must have at most {most:,} entries, and has {len(values):,}")
    return values
