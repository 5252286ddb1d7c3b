"""Forecasts on the workers of a Dask cluster.

Futures are used directly: joblib's Dask backend never ends where a task has killed its workers
(see docs/decisions).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
        while True:
            room = _AHEAD * max(1, sum(client.ncores().values())) - len(running)
            for case in islice(waiting, max(0, room)):
                running[client.submit(forecast, case, pure=False)] = case
            if not running:
                return
            for future in _finished(client, list(running), patience, scheduler):
                yield _result(future, running.pop(future), scheduler)


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


def _finished(client: Any, futures: list[Any], patience: float, scheduler: str) -> list[Any]:
    """Return those of the futures that are finished, at least one."""
    wait = import_module("distributed").wait
    alone = 0.0
    while True:
        try:
            with client.as_current():
                done = wait(futures, timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED").done
            return list(done)
        except TimeoutError:
            alone = 0.0 if client.ncores() else alone + _LOOK_SECONDS
        if alone >= patience:
            rule = f"has had no worker for {alone:.0f} s"
            fix = f"start some with `dask worker {scheduler}`; rows in --out are kept"
            raise InputError(Problem(where=scheduler, rule=rule, fix=fix))


def _result(future: Any, case: Case, scheduler: str) -> tuple[int, Row]:
    """Return what became of a case. Raises `InputError` where the cluster cannot forecast it."""
    if future.status == "finished":
        return future.result()  # type: ignore[no-any-return]
    if future.status != "error":
        rule, fix = "is gone", "start it again; rows in --out are kept"
        raise InputError(Problem(where=scheduler, rule=rule, fix=fix))
    error: BaseException = future.exception()
    if isinstance(error, import_module("distributed").KilledWorker):
        return died(case, error.args[-1] + 1)
    if isinstance(error, ImportError):
        rule = f"its workers cannot read traincast: {error}"
        fix = "install the same version where they run"
        raise InputError(Problem(where=scheduler, rule=rule, fix=fix)) from error
    raise error
