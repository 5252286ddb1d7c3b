"""Network namespaces held by file descriptors alone: they vanish with the process that made them.

Nothing is named and nothing is written to disk, so that a killed test leaves nothing behind.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_NEW_NETWORK = 0x40000000
_PARENT_DEATH_SIGNAL = 1
_HERE = Path("/proc/self/ns/net")
_libc = ctypes.CDLL(None, use_errno=True)


class NamespaceError(RuntimeError):
    """The kernel or the rights of this process do not allow an emulated cluster."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """One network namespace; `handle` keeps it alive."""

    handle: int

    @property
    def path(self) -> str:
        """A path by which other programs can name it."""
        return f"/proc/{os.getpid()}/fd/{self.handle}"

    def batch(self, program: str, lines: Sequence[str]) -> None:
        """Run command lines of `ip` or `tc` inside; raise with what went wrong."""
        done = subprocess.run(
            [program, "-batch", "-"],
            input="\n".join(lines) + "\n",
            preexec_fn=self.enter,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NamespaceError(f"{program}: {done.stderr.strip()}")

    def settings(self, values: dict[str, str]) -> None:
        """Write IPv4 settings of this namespace alone."""

        def write() -> None:
            self.enter()
            for name, value in values.items():
                Path(f"/proc/sys/net/ipv4/{name}").write_text(value)

        subprocess.run(["true"], preexec_fn=write, check=True)

    def enter(self) -> None:
        """Move the calling process, which should be a fresh child, into this namespace."""
        _checked(_libc.setns(self.handle, _NEW_NETWORK), "setns")

    def close(self) -> None:
        """Let go of it: the kernel removes it once no process is inside."""
        os.close(self.handle)


def enter(path: str) -> None:
    """Move the calling process into the namespace at a path; it ends with its parent.

    Raises:
        NamespaceError: the process that held it is gone, or this one may not.
    """
    _libc.prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    handle = os.open(path, os.O_RDONLY)
    _checked(_libc.setns(handle, _NEW_NETWORK), "setns")
    os.close(handle)


def new_namespace() -> Namespace:
    """Return a new, empty network namespace.

    Raises:
        NamespaceError: this process may not make one.
    """
    home = os.open(_HERE, os.O_RDONLY)
    try:
        _checked(_libc.unshare(_NEW_NETWORK), "unshare")
        handle = os.open(_HERE, os.O_RDONLY)
        _checked(_libc.setns(home, _NEW_NETWORK), "setns")
    finally:
        os.close(home)
    return Namespace(handle)


def _checked(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise NamespaceError(f"{what}: {os.strerror(error)}")
