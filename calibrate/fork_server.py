"""A process beside the supervisor that has read torch once and forks its workers in milliseconds.

Every worker is a process of its own with a device context of its own, as if it were a new program;
only reading torch is not done again. The server never touches the device. Where there is no such
server (not Linux, torch cannot be read, a driver is in use), workers are new programs.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from calibrate.measure_worker import main
from calibrate.orphans import end_group
from calibrate.serve_workers import MOST_BYTES, READY, SERVE, Request, become_program
from calibrate.spawn import COMMAND, Child, Handles, Spawn, environment, executed
from simulator.errors import InputError, Problem

_ANSWER_SECONDS = 30.0
"""For a fork on a machine whose memory is short; it takes milliseconds."""
_END_SECONDS = 5.0


@dataclass(slots=True, kw_only=True)
class ForkServer:
    """A running server; `close` must be called, and leaves nothing of it."""

    process: Child
    channel: socket.socket
    otherwise: Spawn
    """Where it does not work, or no more."""
    is_ready: bool = field(default=False)
    is_lost: bool = field(default=False)

    def settled(self) -> bool:
        """Return whether it is known if it works: until then a worker would have to wait."""
        if not self.is_ready and not self.is_lost and _readable(self.channel, 0.0):
            self.is_ready = self._receive() == READY
            self.is_lost = not self.is_ready
        return self.is_ready or self.is_lost

    def give_up(self) -> None:
        """Start workers as new programs from now on."""
        self.is_lost = True

    def spawn(self, handles: Handles, variables: Mapping[str, str]) -> Child:
        """Start a worker. Raises `OSError` where no process can be started."""
        child = None if self.is_lost or not self.settled() else self._fork(handles, variables)
        return self.otherwise(handles, variables) if child is None else child

    def close(self) -> None:
        """End it; workers that it has forked are its supervisor's, and stay."""
        self.channel.close()
        end_group(self.process.pid, _END_SECONDS)
        self.process.wait()

    def _fork(self, handles: Handles, variables: Mapping[str, str]) -> Child | None:
        """Return a worker that the server has forked; None where it does not answer as it must."""
        request = Request(variables=dict(variables)).model_dump_json().encode()
        passed = [handles.job, handles.log, handles.messages, *handles.inherit]
        answer = b""
        with contextlib.suppress(OSError):
            socket.send_fds(self.channel, [request], passed)
            answer = self._receive()
        child = ForkedChild(pid=int(answer)) if answer.isdigit() else None
        # Not ours: this kernel gives orphans to another process.
        self.is_lost = child is None or not child.is_mine()
        return None if self.is_lost else child

    def _receive(self) -> bytes:
        """Return its next message; empty where it is gone or silent."""
        with contextlib.suppress(OSError):
            if _readable(self.channel, _ANSWER_SECONDS):
                return self.channel.recv(MOST_BYTES)
        return b""


@dataclass(slots=True, kw_only=True)
class ForkedChild:
    """A child of this process that another one has forked."""

    pid: int
    code: int | None = field(default=None)

    def is_mine(self) -> bool:
        """Return whether it is a child of this process."""
        try:
            self._look(os.WNOHANG)
        except ChildProcessError:
            return False
        return True

    def poll(self) -> int | None:
        """Return the exit code, minus the signal where one ended it; None while it runs."""
        with contextlib.suppress(ChildProcessError):  # Reaped with its group.
            self._look(os.WNOHANG)
        return self.code

    def wait(self) -> int:
        """Return the exit code once it has ended; 0 where it was reaped with its group."""
        with contextlib.suppress(ChildProcessError):
            self._look(0)
        return self.code or 0

    def _look(self, options: int) -> None:
        if self.code is None:
            ended, status = os.waitpid(self.pid, options)
            self.code = os.waitstatus_to_exitcode(status) if ended else None


def start_server(command: Sequence[str], log: Path) -> ForkServer:
    """Start a server; it reads torch while this process goes on.

    A process that runs one thread forks it, so that what it has read itself is not read again.

    Raises:
        InputError: the log cannot be written, or no process started.
    """
    start = _fork_server if command == COMMAND and _is_alone() else _execute_server
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = start(command, output.fileno(), theirs.fileno())
    except OSError as error:
        ours.close()
        rule = f"cannot be written, or no process started: {(error.strerror or '').lower()}"
        raise InputError(Problem(where=str(log), rule=rule)) from error
    finally:
        theirs.close()
    return ForkServer(process=process, channel=ours, otherwise=executed(command))


def _is_alone() -> bool:
    """Return whether this process runs one thread: others would be cut off in a fork."""
    return len(list(Path("/proc/self/task").iterdir())) == 1


def _fork_server(command: Sequence[str], log: int, channel: int) -> Child:
    pid = os.fork()
    if pid:
        return ForkedChild(pid=pid)
    try:
        become_program((os.open(os.devnull, os.O_RDONLY), log, log), keep=(channel,))
        sys.argv = [*command, SERVE, str(channel)]
        main()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def _execute_server(command: Sequence[str], log: int, channel: int) -> Child:
    return subprocess.Popen(
        [*command, SERVE, str(channel)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        pass_fds=(channel,),
        start_new_session=True,
        env=environment(os.environ),
    )


def can_fork() -> bool:
    """Return whether this system gives orphans to the process that asks for them."""
    return sys.platform == "linux"


def _readable(channel: socket.socket, seconds: float) -> bool:
    return bool(select.select([channel], [], [], seconds)[0])
