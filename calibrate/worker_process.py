"""A worker as its supervisor sees it: a process in a session of its own, with a log."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from calibrate.nccl_choice import NCCL, debug_variables
from calibrate.orphans import end_group
from calibrate.spawn import Child, Handles, Spawn
from calibrate.worker_messages import MESSAGE, Job, Message
from simulator.errors import InputError, Problem

STOPPED = "stopped"
LAST_LINES = 8
"""Of a log, as many as a stack of this program needs."""
_END_SECONDS = 20.0
"""For the kernel and the driver to free what a killed process held."""
_STACK_SECONDS = 1.0
_STEP = 0.05
_TAIL_BYTES = 16384
_CHUNK = 65536


@dataclass(slots=True, kw_only=True)
class WorkerProcess:
    """A running worker; `end` must be called, and leaves nothing of it."""

    process: Child
    log: Path
    log_start: int
    job: int
    """Pipe by whose end it knows that this process is gone."""
    pipe: int
    """Of its messages."""
    memory_kills: int
    """Of the system since it was booted, when this worker was started."""
    rest: bytes = field(default=b"")

    def messages(self) -> list[Message]:
        """Return what it has said since the last call."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.pipe, _CHUNK):
                self.rest += chunk
        *whole, self.rest = self.rest.split(b"\n")
        return [MESSAGE.validate_json(line) for line in whole]

    def exit_code(self) -> int | None:
        """Return the exit code, minus the signal where one ended it; None while it runs."""
        return self.process.poll()

    def out_of_memory(self) -> bool:
        """Return whether the system has killed processes for memory since this one was started."""
        return _memory_kills() > self.memory_kills

    def state(self) -> str:
        """Return `STOPPED` where a signal has stopped it; else nothing."""
        try:
            text = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return ""
        return STOPPED if text.rpartition(")")[2].split()[0] in ("T", "t") else ""

    def write_stack(self) -> None:
        """Make it write to its log where it is, and wait a moment until it has."""
        size = _size(self.log)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGUSR1)
        end = time.monotonic() + _STACK_SECONDS
        while _size(self.log) == size and time.monotonic() < end:
            time.sleep(_STEP)

    def last_lines(self) -> tuple[str, ...]:
        """Return the last lines that it has written to its log."""
        return last_lines(self.log, self.log_start)

    def end(self) -> bool:
        """Kill it and all that it has started; return whether the kernel has let go of them."""
        gone = end_group(self.process.pid, _END_SECONDS)
        os.close(self.job)
        os.close(self.pipe)
        if gone:
            self.process.wait()
        return gone


def start_worker(
    job: Job, log: Path, *, spawn: Spawn, inherit: Sequence[int] = ()
) -> WorkerProcess:
    """Start a worker and give it its job; `inherit` are descriptors that it keeps open.

    Raises:
        InputError: the log cannot be written.
    """
    reading, writing = os.pipe()
    taking, giving = os.pipe()
    os.set_blocking(reading, False)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            start = output.tell()
            handles = Handles(
                job=taking, log=output.fileno(), messages=writing, inherit=tuple(inherit)
            )
            process = spawn(handles, _nccl_choice(job, log))
    except OSError as error:
        os.close(reading)
        os.close(giving)
        rule = f"cannot be written, or no worker started: {(error.strerror or '').lower()}"
        raise InputError(Problem(where=str(log), rule=rule)) from error
    finally:
        os.close(writing)
        os.close(taking)
    _hand_over(giving, job)
    return WorkerProcess(
        process=process,
        log=log,
        log_start=start,
        job=giving,
        pipe=reading,
        memory_kills=_memory_kills(),
    )


def last_lines(log: Path, start: int = 0) -> tuple[str, ...]:
    """Return the last lines of a log from the byte `start` on, without those that are blank."""
    try:
        with log.open("rb") as file:
            file.seek(max(start, _size(log) - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in text.splitlines()]
    return tuple(line for line in lines if line)[-LAST_LINES:]


def _hand_over(pipe: int, job: Job) -> None:
    """Write the job and leave the pipe open: its end tells the worker that this process is gone."""
    data = job.model_dump_json().encode() + b"\n"
    with contextlib.suppress(BrokenPipeError):
        while data:
            data = data[os.write(pipe, data) :]


def _nccl_choice(job: Job, log: Path) -> dict[str, str]:
    """Return what makes NCCL write its choices beside the worker's log, where the job asks for it.

    Only NCCL and RCCL read it; whatever the user has set of it stays.
    """
    batch = job.task.batch
    asked = batch is not None and batch.nccl_choice and job.task.backend == NCCL
    return debug_variables(log, os.environ) if asked and job.store is not None else {}


def _memory_kills() -> int:
    """Return how many processes this system has killed for memory; 0 where it does not say."""
    try:
        text = Path("/proc/vmstat").read_text(encoding="utf-8")
    except OSError:
        return 0
    match = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
    return int(match[1]) if match else 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
