"""Forecasts on the workers of a Dask cluster.

Futures are used directly: joblib's Dask backend never ends where a task has killed its workers
(see docs/decisions).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import islice
from typing import Any

from planner.sweep.cases import Case
from planner.sweep.local_workers import Forecast, died
from planner.sweep.row import Row
from simulator.errors import InputError, Problem

_CONNECT_SECONDS = 10.0
_LOOK_SECONDS = 5
"""Between looks at whether any worker is left."""
_PATIENCE_SECONDS = 60
"""Without any worker, before the sweep ends."""
_AHEAD = 2
"""Cases handed out for each thread of a worker."""
_CHANCES = 2
"""Times that a case is handed out again which the scheduler no longer knows: it has restarted."""
_SETTLED = ("finished", "error", "cancelled")
"""States of a future in which Dask does no more of its own accord; "lost" is not one."""


def dask_rows(
    cases: Iterable[Case],
    forecast: Forecast,
    scheduler: str,
    *,
    connect: float = _CONNECT_SECONDS,
    patience: float = _PATIENCE_SECONDS,
) -> Iterator[tuple[int, Row]]:
    """Yield the rows of cases as they are finished; Dask gives those of a dead worker to another.

    Raises:
        InputError: Dask is not installed, nothing answers at `scheduler`, no worker is left, or
            workers have another version of traincast.
    """
    with _connected(scheduler, connect) as client:
        waiting = iter(cases)
        running: dict[Any, Case] = {}
        dropped: Counter[int] = Counter()
        while True:
            room = _AHEAD * max(1, _threads(client, scheduler)) - len(running)
            for case in islice(waiting, max(0, room)):
                running[client.submit(forecast, case, pure=False)] = case
            if not running:
                return
            for future in _settled(client, tuple(running), patience, scheduler):
                case = running[future]
                if future.status == "cancelled":
                    dropped[case.number] += 1
                    if client.status != "running" or dropped[case.number] > _CHANCES:
                        raise _gone(scheduler)
                    del running[future]
                    running[client.submit(forecast, case, pure=False)] = case
                elif (found := _result(future, case, scheduler)) is not None:
                    del running[future]
                    yield found


@contextmanager
def _connected(scheduler: str, seconds: float) -> Iterator[Any]:
    """Give a client; what it has asked for and does not need any more is cancelled."""
    try:
        dask: Any = import_module("distributed")
    except ImportError as error:
        rule = "needs Dask, which is not installed"
        fix = "pip install 'traincast[sweep]', here and where the workers run"
        raise InputError(Problem(key="--scheduler", rule=rule, fix=fix)) from error
    try:
        client = dask.Client(scheduler, timeout=seconds, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            Problem(
                key="--scheduler",
                found=scheduler,
                rule=f"no Dask scheduler answers there within {seconds:g} s",
                fix="start one with `dask scheduler`; it prints its address, tcp://host:8786",
            )
        ) from error
    try:
        yield client
    finally:
        client.close(timeout=_CONNECT_SECONDS)


def _settled(client: Any, futures: Sequence[Any], patience: float, scheduler: str) -> list[Any]:
    """Return those of the futures that are done with, at least one.

    One whose result was lost with its worker is not: Dask computes it again.
    """
    wait = import_module("distributed").wait
    seen = time.monotonic()
    while True:
        # Cancelled futures make `wait` raise.
        with client.as_current(), suppress(TimeoutError, CancelledError):
            wait(futures, timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED")
        if settled := [future for future in futures if future.status in _SETTLED]:
            return settled
        if _threads(client, scheduler):
            seen = time.monotonic()
        alone = time.monotonic() - seen
        if alone >= patience:
            rule = f"has had no worker for {alone:.0f} s"
            fix = f"start some with `dask worker {scheduler}`; rows in --out are kept"
            raise InputError(Problem(where=scheduler, rule=rule, fix=fix))


def _threads(client: Any, scheduler: str) -> int:
    """Return the threads of all workers. Raises `InputError` where the scheduler is gone."""
    try:
        return sum(client.ncores().values())
    except OSError as error:
        raise _gone(scheduler) from error


def _gone(scheduler: str) -> InputError:
    return InputError(
        Problem(where=scheduler, rule="is gone", fix="start it again; rows in --out are kept")
    )


def _result(future: Any, case: Case, scheduler: str) -> tuple[int, Row] | None:
    """Return what became of a case, None where its result has been lost meanwhile.

    A worker may die at any moment until its result is here.

    Raises:
        InputError: the cluster cannot forecast it.
    """
    try:
        return future.result(timeout=_LOOK_SECONDS)  # type: ignore[no-any-return]
    except (TimeoutError, CancelledError):
        return None
    except Exception as error:
        return _failed(error, case, scheduler)


def _failed(error: Exception, case: Case, scheduler: str) -> tuple[int, Row]:
    """Return the row of a case that has killed its workers. Raises what else went wrong."""
    if isinstance(error, import_module("distributed").KilledWorker):
        return died(case, error.args[-1] + 1)
    if isinstance(error, ImportError):
        rule = f"its workers cannot read traincast: {error}"
        fix = "install the same version where they run"
        raise InputError(Problem(where=scheduler, rule=rule, fix=fix)) from error
    raise error
