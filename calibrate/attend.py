"""One task on one rank: start a worker, listen, watch the clock, and say how it ended."""

from __future__ import annotations

import signal
from collections.abc import Generator
from dataclasses import dataclass, field

from calibrate.board import lost_name, stop_name
from calibrate.crew import SLACK, Crew, Ending, Report, Worker
from calibrate.worker_messages import (
    Begun,
    Done,
    Facts,
    Failed,
    LeftOut,
    Message,
    Ready,
    Task,
    Trouble,
)


def attend(crew: Crew, task: Task, *, shared: bool) -> Generator[Message, None, Report]:
    """Yield what this rank's worker says until it ends or is ended; return the report.

    `shared` tasks are done by all ranks together: rank 0 tells the others when to stop, and they
    tell rank 0 when they lose their worker. No worker is left on return, whatever happens.

    Raises:
        RunEndedError: the run cannot go on.
    """
    deadline = None if task.seconds is None else crew.now() + task.seconds
    watch = _Watch(task=task, since=crew.now(), deadline=deadline)
    worker = crew.start(crew.job(task), f"{task.name}-rank{crew.identity.rank}")
    gone = False
    try:
        ending = None
        while ending is None:
            crew.pulse.tick()
            code = worker.exit_code()
            for message in worker.messages():
                watch.note(message, crew.now())
                yield message
            ending = watch.ending(code) or _stopped(crew, task, watch, shared=shared)
        if shared:
            _tell(crew, task, ending)
        report = _report(crew, watch, worker, ending)
    finally:
        gone = worker.end()
    return report if gone else report.model_copy(update={"unkillable": True})


@dataclass(slots=True, kw_only=True)
class _Watch:
    """What the worker has said, and how long it has been at what it does."""

    task: Task
    since: float
    deadline: float | None
    """On this process's clock, of the whole run."""
    ready: bool = field(default=False)
    index: int | None = field(default=None)
    failed: Failed | None = field(default=None)

    def note(self, message: Message, now: float) -> None:
        """Take in a message."""
        self.since = now
        match message:
            case Ready() | Facts():
                self.ready = True
            case Begun():
                self.index = message.index
            case Done() | LeftOut():
                self.index = None
            case Failed():
                self.failed = message

    def ending(self, code: int | None) -> Ending | None:
        """Return how the worker has ended by itself; None where it has not."""
        if self.failed is not None:
            return Ending.RAISED
        if code is None:
            return None
        return Ending.DONE if code == 0 and self.ready and self.index is None else Ending.DIED

    def late(self, crew: Crew) -> Ending | None:
        """Return whose time is over, the point's or the run's; None while there is some."""
        expected = 0.0 if self.index is None else SLACK * self.task.expected(self.index)
        limit = crew.patience.point + expected if self.ready else crew.patience.start
        now = crew.now()
        if now > self.since + limit:
            return Ending.LATE
        over = self.deadline is not None and now > self.deadline + expected
        return Ending.BUDGET if over else None


def _stopped(crew: Crew, task: Task, watch: _Watch, *, shared: bool) -> Ending | None:
    """Return whether this rank's worker must be ended: by the clock, or because of another's."""
    if crew.leads or not shared:
        late = watch.late(crew)
        if late is not None or not shared:
            return late
    name = lost_name(task.number) if crew.leads else stop_name(task.number)
    (text,) = crew.board.read([name])
    return None if text is None else Ending.STOPPED


def _tell(crew: Crew, task: Task, ending: Ending) -> None:
    """Let the other ranks know: rank 0 says stop, the others that they have lost their worker."""
    if crew.leads and ending is not Ending.DONE:
        crew.board.post(stop_name(task.number), ending.value)
    elif ending in (Ending.RAISED, Ending.DIED):
        crew.board.post(lost_name(task.number), ending.value)


def _report(crew: Crew, watch: _Watch, worker: Worker, ending: Ending) -> Report:
    state = worker.state()
    why = _stop_reason(crew, watch.task) if ending is Ending.STOPPED else ending.value
    if why == Ending.LATE and not state and worker.exit_code() is None:
        worker.write_stack()
    failed = watch.failed
    code = worker.exit_code()
    killed = ending is Ending.DIED and code == -signal.SIGKILL and worker.out_of_memory()
    return Report(
        rank=crew.identity.rank,
        host=crew.identity.host,
        ending=ending,
        ready=watch.ready,
        index=watch.index,
        trouble=failed.trouble if failed else Trouble.MEMORY if killed else None,
        reason=failed.reason if failed else "",
        errno=failed.errno if failed else None,
        exit_code=code if ending is Ending.DIED else None,
        state=state,
        lines=worker.last_lines(),
    )


def _stop_reason(crew: Crew, task: Task) -> str:
    (text,) = crew.board.read([stop_name(task.number)])
    return text or ""
