"""A run of measurements as one rank's supervisor does it, from the first look to the last record.

Every process that torchrun, srun or a person starts is a supervisor. It never touches the device:
it starts a worker a batch, watches it, and outlives whatever becomes of it. A server beside it has
read torch and forks the workers. Supervisors talk over a board; rank 0 decides, the others follow.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from calibrate.board import Board, BoardGoneError, LocalBoard, host_name, left_name
from calibrate.crew import Crew
from calibrate.follow import END, follow
from calibrate.fork_server import can_fork, start_server
from calibrate.identity import Identity, read_identity
from calibrate.journal import JOURNAL
from calibrate.lead_run import lead_run
from calibrate.orphans import adopt_orphans
from calibrate.pulse import InterruptedRunError, Pulse, RunEndedError
from calibrate.run_events import Event
from calibrate.run_settings import RunSettings
from calibrate.signals import ending_signals, exit_code_of
from calibrate.spawn import AtOnce, Spawn, Starts, executed
from calibrate.worker_messages import Job
from calibrate.worker_process import WorkerProcess, start_worker
from simulator.errors import EXIT_FAILED, Problem, TraincastError
from simulator.folder_lock import lock_folder

LOGS = "logs"
_GOODBYE_SECONDS = 10.0
"""For the other ranks to read why the run ends, before the store goes with this process."""
_STEP = 0.1


class RunStoppedError(TraincastError):
    """The run has ended too early; what is measured is on disk."""

    def __init__(self, problem: Problem, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(problem)


def supervise(
    settings: RunSettings, environment: Mapping[str, str] = os.environ
) -> Iterator[Event]:
    """Measure, and yield what happens; ranks other than 0 yield nothing.

    No worker is left when this ends, in whatever way.

    Raises:
        InputError: wrong settings, another machine, a full disk.
        RunStoppedError: a signal came, or another rank is gone.
    """
    identity = read_identity(environment)
    adopt_orphans()
    with ending_signals(environment) as interrupted, _starts(settings, identity) as starts:
        try:
            board = _board(identity, settings)
        except BoardGoneError as error:
            reason = f"{identity.name} does not reach the store that rank 0 or torchrun holds"
            raise _stopped(settings, f"{reason}: {error}") from error
        crew = _crew(identity, board, settings, interrupted, starts)
        with _telling(crew, settings):
            board.post(host_name(identity.rank), identity.host)
            if crew.leads:
                yield from _lead(crew, settings, starts.spawn)
            else:
                follow(crew)


@contextmanager
def _starts(settings: RunSettings, identity: Identity) -> Iterator[Starts]:
    """Give what starts workers; a server for it is started first, as it takes seconds."""
    if not settings.forked or not can_fork():
        yield AtOnce(spawn=executed(settings.worker))
        return
    if identity.world.size > 1:
        # This process reads torch too, for its store: before the fork, so that it is read once.
        import_module("calibrate.measure_rendezvous")
    log = Path(settings.folder, LOGS, f"server-rank{identity.rank}.log")
    server = start_server(settings.worker, log)
    try:
        yield server
    finally:
        server.close()


def _lead(crew: Crew, settings: RunSettings, spawn: Spawn) -> Iterator[Event]:
    lock = lock_folder(settings.folder)
    try:
        # Workers inherit the lock: the folder is free only when the last of them is gone.
        start = _starter(settings, spawn, inherit=(lock.handle,))
        yield from lead_run(replace(crew, start=start), settings, lock.notes)
        _await_others(crew)
    finally:
        lock.release()


def _board(identity: Identity, settings: RunSettings) -> Board:
    if identity.world.size == 1:
        return LocalBoard()
    from calibrate.measure_rendezvous import StoreBoard

    return StoreBoard(identity, settings.patience.start)


def _crew(
    identity: Identity,
    board: Board,
    settings: RunSettings,
    interrupted: Callable[[], str],
    starts: Starts,
) -> Crew:
    pulse = Pulse(
        identity=identity,
        board=board,
        now=time.monotonic,
        sleep=time.sleep,
        interrupted=interrupted,
        silent=settings.patience.silent,
    )
    return Crew(
        identity=identity,
        board=board,
        pulse=pulse,
        now=time.monotonic,
        start=_starter(settings, starts.spawn, inherit=()),
        starts=starts,
        patience=settings.patience,
        journal=str(settings.folder / JOURNAL),
    )


def _starter(
    settings: RunSettings, spawn: Spawn, inherit: Sequence[int]
) -> Callable[[Job, str], WorkerProcess]:
    def start(job: Job, name: str) -> WorkerProcess:
        log = Path(settings.folder, LOGS, f"{name}.log")
        return start_worker(job, log, spawn=spawn, inherit=inherit)

    return start


@contextmanager
def _telling(crew: Crew, settings: RunSettings) -> Iterator[None]:
    """Tell the other ranks of whatever ends this one, and raise it as the user's error."""
    name = crew.identity.name
    try:
        yield
    except InterruptedRunError as error:
        reason = f"{name} was ended by {error}"
        _say_goodbye(crew, reason)
        raise _stopped(settings, reason, exit_code_of(str(error))) from error
    except (RunEndedError, BoardGoneError) as error:
        _say_goodbye(crew, str(error))
        raise _stopped(settings, str(error)) from error
    except BaseException as error:
        _say_goodbye(crew, f"{name}: {str(error) or type(error).__name__}")
        raise


def _stopped(settings: RunSettings, reason: str, code: int = EXIT_FAILED) -> RunStoppedError:
    rule = f"{reason}; every finished point is on disk"
    fix = "run the same command again, which goes on from there"
    return RunStoppedError(Problem(where=str(settings.folder), rule=rule, fix=fix), code)


def _say_goodbye(crew: Crew, reason: str) -> None:
    crew.pulse.say_gone(reason)
    try:
        if crew.leads:
            _await_others(crew)
        else:
            crew.board.post(left_name(crew.identity.rank), END)
    except BoardGoneError:
        return


def _await_others(crew: Crew) -> None:
    """Wait a moment for the other ranks to have read the last that they need to know."""
    names = [left_name(rank) for rank in range(1, crew.identity.world.size)]
    end = crew.now() + _GOODBYE_SECONDS
    while None in crew.board.read(names) and crew.now() < end:
        time.sleep(_STEP)
