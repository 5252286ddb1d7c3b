"""No process outlives the one that started it, however that one ends.

Linux kills a worker with its supervisor (`PR_SET_PDEATHSIG`). Whatever the worker has started is
ended by its warden: a process in the same group that waits for the supervisor's end of a pipe to
close and then kills the whole group. Where there is no prctl, the warden alone does it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time

_SET_DEATH_SIGNAL = 1
_SET_SUBREAPER = 36
"""PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of <linux/prctl.h>."""
_CHUNK = 4096
_STEP = 0.01


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent has ended, so that they can be reaped."""
    _prctl(_SET_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Be killed when the process `parent` ends; end now where it has ended already."""
    _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def start_warden(watched: int, *, close: tuple[int, ...] = ()) -> None:
    """Fork a process that kills the group of this one once `watched`, a pipe, is closed.

    To be called by the leader of the group before it has any thread. `close` are the descriptors
    that the warden must not keep open.
    """
    if os.fork() != 0:
        return
    for handle in close:
        os.close(handle)
    for wanted in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(wanted, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        while os.read(watched, _CHUNK):
            pass
    os.killpg(0, signal.SIGKILL)


def end_group(group: int, seconds: float) -> bool:
    """Kill a process group and reap what of it are children; return whether all are gone."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        if _reap(group) and not _is_there(group):
            return True
        if time.monotonic() >= end:
            return False
        time.sleep(_STEP)


def _reap(group: int) -> bool:
    """Return whether no child is left in the group."""
    try:
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
