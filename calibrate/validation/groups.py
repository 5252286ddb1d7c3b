"""Which rows are judged together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from calibrate.validation.metrics import (
    feasibility_of,
    is_slow,
    rank_correlation,
    regret_of,
    statistics_of,
)
from calibrate.validation.records import Group, Pair, Quantity, RowResult, Status

_Labels: TypeAlias = Mapping[str, str]


def groups_of(rows: Sequence[RowResult]) -> tuple[Group, ...]:
    """Return the group of all rows, those by label, those by source, and reported memory.

    A source that all rows share is not a group of its own. Rows without labels (they were
    skipped before anything could be read) are in the first group only.
    """
    if not rows:
        return ()
    quantity = rows[0].quantity
    parts = [({}, rows), *_split(rows, _labels)]
    sources = _split(rows, _source)
    parts += sources if len(sources) > 1 else []
    found = [_group(by, members, quantity) for by, members in parts]
    with_memory = [row for row in rows if row.memory is not None]
    if with_memory:
        memory = [({}, with_memory), *_split(with_memory, _labels)]
        found += [_memory_group(by, members) for by, members in memory]
    return tuple(found)


def _labels(row: RowResult) -> _Labels:
    return row.labels or {}


def _source(row: RowResult) -> _Labels:
    return {"source": row.source} if row.source else {}


def _split(
    rows: Sequence[RowResult], by: Callable[[RowResult], _Labels]
) -> list[tuple[_Labels, Sequence[RowResult]]]:
    """Return the rows that agree in what they are grouped by, in order of appearance."""
    groups: dict[tuple[tuple[str, str], ...], list[RowResult]] = {}
    for row in rows:
        if key := tuple(by(row).items()):
            groups.setdefault(key, []).append(row)
    return [(dict(key), members) for key, members in groups.items()]


def _group(by: Mapping[str, str], rows: Sequence[RowResult], quantity: Quantity) -> Group:
    pairs = [row.pair for row in rows if row.pair is not None]
    return Group(
        by=by,
        quantity=quantity,
        rows=len(rows),
        skipped=sum(row.status is Status.SKIPPED for row in rows),
        statistics=statistics_of(pairs),
        slow=sum(map(is_slow, pairs)),
        without_slow=statistics_of([pair for pair in pairs if not is_slow(pair)]),
        rank_correlation=rank_correlation(pairs),
        regret=regret_of(rows),
        feasibility=feasibility_of(rows),
    )


def _memory_group(by: Mapping[str, str], rows: Sequence[RowResult]) -> Group:
    pairs: list[Pair] = [row.memory for row in rows if row.memory is not None]
    return Group(
        by=by,
        quantity=Quantity.PEAK_MEMORY,
        rows=len(rows),
        skipped=0,
        statistics=statistics_of(pairs),
        slow=0,
        without_slow=None,
        rank_correlation=rank_correlation(pairs),
    )
