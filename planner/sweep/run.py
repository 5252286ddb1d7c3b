"""From the cases of a sweep to their rows: those known, those that workers find, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from planner.sweep.cases import Case
from planner.sweep.dask_workers import dask_rows
from planner.sweep.forecast import forecast_case
from planner.sweep.local_workers import Forecast, local_rows, rows_in_time
from planner.sweep.row import Outcome, Row
from planner.sweep.store import Store, open_store

Progress = Callable[[int, int], None]
"""Is told how many cases have a row, of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Where cases are forecast."""

    jobs: int | None = None
    """Processes on this machine; None: one a core, once the sweep has taken some seconds."""
    scheduler: str = ""
    """Address of a Dask scheduler whose workers do it instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """The rows of a sweep, in the order of its cases."""

    cases: tuple[Case, ...]
    rows: tuple[Row, ...]
    kept: int = 0
    """Rows that an earlier run had found."""
    notes: tuple[str, ...] = ()
    """What the user should be told, beside the rows."""


def run_cases(
    cases: Sequence[Case],
    *,
    workers: Workers | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
    forecast: Forecast = forecast_case,
) -> Swept:
    """Return the row of each case; rows do not depend on `workers`, nor does their order.

    Finished rows are kept in `folder`, and those that it has already are not computed again.

    Raises:
        InputError: the folder or the cluster cannot be used; finished rows are kept.
    """
    with open_store(folder) if folder is not None else nullcontext() as store:
        rows = {} if store is None else _known(store, cases)
        kept = len(rows)
        missing = [case for case in cases if case.number not in rows]
        _tell(progress, kept, len(cases))
        for number, row in _rows(missing, workers or Workers(), forecast):
            rows[number] = row
            if store is not None and row.outcome is not Outcome.DIED:
                store.keep(cases[number], row)
            _tell(progress, len(rows), len(cases))
    ordered = tuple(rows[case.number] for case in cases)
    notes = () if store is None else store.notes
    return Swept(cases=tuple(cases), rows=ordered, kept=kept, notes=notes)


def _known(store: Store, cases: Sequence[Case]) -> dict[int, Row]:
    found = ((case.number, store.known(case)) for case in cases)
    return {number: row for number, row in found if row is not None}


def _rows(cases: Sequence[Case], workers: Workers, forecast: Forecast) -> Iterator[tuple[int, Row]]:
    if not cases:
        return iter(())
    if workers.scheduler:
        return dask_rows(cases, forecast, workers.scheduler)
    if workers.jobs is None:
        return rows_in_time(cases, forecast)
    return local_rows(cases, forecast, workers.jobs)


def _tell(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)
