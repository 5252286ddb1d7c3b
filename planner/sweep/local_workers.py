"""Forecasts on the cores of this machine, through joblib: in this process, or in several."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool

from joblib import Parallel, cpu_count, delayed

from planner.sweep.cases import Case
from planner.sweep.row import Outcome, Row

Forecast = Callable[[Case], tuple[int, Row]]
_AHEAD = 2
"""Cases handed out for each worker: one that it is at, one that waits."""
_CHANCES = 2
"""Workers that a case may kill alone: the first may have been ended by somebody else."""
_START_SECONDS = 3.0
"""In which workers have read the program; a sweep that is shorter is done without them."""


def rows_in_time(cases: Sequence[Case], forecast: Forecast) -> Iterator[tuple[int, Row]]:
    """Yield the rows of cases as they are finished: some seconds here, then on all cores."""
    end = time.monotonic() + _START_SECONDS
    for place, case in enumerate(cases, start=1):
        yield forecast(case)
        if time.monotonic() > end:
            yield from local_rows(cases[place:], forecast, cores())
            return


def local_rows(cases: Iterable[Case], forecast: Forecast, jobs: int) -> Iterator[tuple[int, Row]]:
    """Yield the rows of cases as they are finished.

    A worker that dies takes all others down with it. Each of the cases that may have killed it is
    then forecast alone, and is given up where it kills twice; all others go on as before.
    """
    waiting = deque(cases)
    jobs = min(jobs, len(waiting))
    if jobs <= 1:
        yield from map(forecast, waiting)
        return
    while waiting:
        left = {case.number: case for case in waiting}
        try:
            for number, row in _parallel(waiting, forecast, jobs):
                del left[number]
                yield number, row
        except BrokenProcessPool:
            waiting = deque(left.values())
            suspects = [waiting.popleft() for _ in range(min(_AHEAD * jobs, len(waiting)))]
            for case in suspects:
                yield _alone(case, forecast, jobs)
        else:
            return


def cores() -> int:
    """Return the cores that this process may use."""
    return int(cpu_count())


def died(case: Case, workers: int) -> tuple[int, Row]:
    """Return the row of a case that has killed so many workers."""
    reason = f"workers that were killed while they forecast it: {workers}; too little memory?"
    return case.number, Row(outcome=Outcome.DIED, reason=reason)


def _parallel(cases: Iterable[Case], forecast: Forecast, jobs: int) -> Iterator[tuple[int, Row]]:
    workers = Parallel(
        n_jobs=jobs,
        backend="loky",
        batch_size=1,
        pre_dispatch=_AHEAD * jobs,
        return_as="generator_unordered",
    )
    yield from workers(delayed(forecast)(case) for case in cases)


def _alone(case: Case, forecast: Forecast, jobs: int) -> tuple[int, Row]:
    """Return the row of a case that has a worker process for itself."""
    for _ in range(_CHANCES):
        try:
            (found,) = _parallel([case], forecast, jobs)
        except BrokenProcessPool:
            continue
        return found
    return died(case, _CHANCES)
