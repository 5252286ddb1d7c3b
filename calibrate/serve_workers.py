"""The fork server's own process: it has read torch once, and forks a worker for every request.

A worker is forked twice: the process between them ends at once, so that the worker becomes a child
of the supervisor, which has made itself the parent of orphans (`adopt_orphans`). All that holds for
a worker that is a new program then holds for this one: its supervisor waits for it and ends it, and
it dies with its supervisor.

Forking is safe here as nothing runs but this thread: importing torch starts no thread and does not
touch a device (the threads of OpenBLAS, where numpy has it, stop and start again around a fork by
themselves). Where something has touched one after all, this process ends and says so: drivers do
not survive a fork. Source: PyTorch's notes on multiprocessing, CUDA in multiprocessing.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from calibrate.orphans import die_with_parent
from simulator.files import FileRecord

SERVE = "--serve"
"""Before the number of the socket to the supervisor, the last argument."""
READY = b"ready"
MOST_BYTES = 65536
"""Of a request; they hold a few variables."""
_MOST_HANDLES = 16
_DRIVERS = ("/dev/nvidia-uvm", "/dev/kfd")
"""What CUDA's and ROCm's run-time open when they are initialised."""


class Request(FileRecord):
    """A worker to be forked; its descriptors come along: job, log, messages, then the others."""

    variables: dict[str, str]
    """To be set in its environment."""


def serve(channel: int, preload: Callable[[], None]) -> int:
    """Fork a worker for every request; return in the worker, with its pipe for messages.

    The process that was called never returns: it ends with its supervisor.
    """
    die_with_parent(os.getppid())
    supervisor = socket.socket(fileno=channel)
    preload()
    touched = driver_in_use()
    if touched:
        sys.exit(f"forks no workers: {touched} is open, and a driver does not survive a fork")
    supervisor.send(READY)
    while True:
        data, handles, _, _ = socket.recv_fds(supervisor, MOST_BYTES, _MOST_HANDLES)
        if not data:
            os._exit(0)
        pid = _fork_twice()
        if pid == 0:
            supervisor.detach()
            job, log, messages, *others = handles
            become_program((job, log, log), keep=(messages, *others))
            os.environ.update(Request.model_validate_json(data).variables)
            return messages
        for handle in handles:
            os.close(handle)
        supervisor.send(str(pid).encode())


def driver_in_use(opened: Path = Path("/proc/self/fd")) -> str:
    """Return the accelerator's device file that this process has open; empty where none is."""
    paths = [os.path.realpath(handle) for handle in opened.iterdir()]
    return next((path for path in paths if path in _DRIVERS), "")


def _fork_twice() -> int:
    """Return the process id of the grandchild; 0 in the grandchild, whose parent is gone."""
    reading, writing = os.pipe()
    between = _fork()
    if between == 0:
        os.close(reading)
        worker = _fork()
        if worker:
            os.write(writing, str(worker).encode())
            os._exit(0)
        os.close(writing)
        return 0
    os.close(writing)
    os.waitpid(between, 0)
    text = os.read(reading, MOST_BYTES)
    os.close(reading)
    return int(text)


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside OpenBLAS's threads
        return os.fork()


def become_program(streams: tuple[int, int, int], *, keep: Sequence[int]) -> None:
    """Make a fork what a new program is at its start: a session, its streams, nothing else open."""
    os.setsid()
    for stream, handle in enumerate(streams):
        os.dup2(handle, stream)
    last = len(streams) - 1
    for handle in sorted(keep):
        os.closerange(last + 1, handle)
        last = handle
    os.closerange(last + 1, os.sysconf("SC_OPEN_MAX"))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    sys.stdin, sys.stdout, sys.stderr = (
        open(stream, mode, closefd=False, encoding="utf-8")  # noqa: SIM115 - for ever
        for stream, mode in enumerate("rww")
    )
