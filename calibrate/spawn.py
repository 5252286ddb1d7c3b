"""Ways to start a worker: as a new program here, as a fork of one that has torch in `fork_server`.

A new program reads torch first, which takes seconds of a core for each worker; it works wherever
there are processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

COMMAND = (sys.executable, "-m", "calibrate.measure_worker")
"""What comes last says how: the number of the pipe for messages, or that it forks others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handles:
    """Open descriptors of this process that a worker takes over; they stay open here."""

    job: int
    """Becomes standard input: the job's line, then nothing until this process is gone."""
    log: int
    """Becomes standard output and standard error."""
    messages: int
    """What the worker writes its messages to."""
    inherit: tuple[int, ...] = ()
    """Only kept open."""


class Child(Protocol):
    """A process that this one has started, leader of a session and of a process group."""

    @property
    def pid(self) -> int:
        """Its process id, and that of its group."""

    def poll(self) -> int | None:
        """Return the exit code, minus the signal where one ended it; None while it runs."""

    def wait(self) -> int:
        """Return the exit code once it has ended."""


Spawn: TypeAlias = Callable[[Handles, Mapping[str, str]], Child]
"""Starts a worker with what it is to have and variables beside this process's environment."""


class Starts(Protocol):
    """What starts workers, at once or after a while."""

    @property
    def spawn(self) -> Spawn:
        """Start a worker. It raises `OSError` where no process can be started."""

    def settled(self) -> bool:
        """Return whether a worker would start now, in the one way or the other."""

    def give_up(self) -> None:
        """Do not wait for what it was to become: start workers as new programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnce:
    """Nothing has to be waited for."""

    spawn: Spawn

    def settled(self) -> bool:
        """Return that it is."""
        return True

    def give_up(self) -> None:
        """Do nothing."""


def executed(command: Sequence[str] = COMMAND) -> Spawn:
    """Return what starts every worker as a new program. It raises `OSError` where it cannot."""

    def spawn(handles: Handles, variables: Mapping[str, str]) -> Child:
        return subprocess.Popen(
            [*command, str(handles.messages)],
            stdin=handles.job,
            stdout=handles.log,
            stderr=subprocess.STDOUT,
            pass_fds=(handles.messages, *handles.inherit),
            start_new_session=True,
            env={**environment(os.environ), **variables},
        )

    return spawn


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """Return the worker's environment: it finds this program where this process has found it."""
    here = str(Path(__file__).resolve().parents[1])
    paths = own.get("PYTHONPATH", "")
    known = here in paths.split(os.pathsep) or Path(here).name == "site-packages"
    extended = paths if known else os.pathsep.join(filter(None, (paths, here)))
    return {**own, **({"PYTHONPATH": extended} if extended else {})}
