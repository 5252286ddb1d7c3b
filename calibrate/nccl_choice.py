"""Which algorithm and protocol NCCL took, from its environment or from its own debug lines.

Rank 0 of a communicator writes a line for each call where NCCL_DEBUG=INFO and
NCCL_DEBUG_SUBSYS=TUNING, into the file that NCCL_DEBUG_FILE names. Older
releases write numbers, newer ones names:

    host:1:2 [0] NCCL INFO AllReduce: 8388608 Bytes -> Algo 1 proto 2 time 91.2
    host:1:2 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1}

Source: NCCL, src/enqueue.cc, src/include/nccl_common.h.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from simulator.parallel.groups import Collective

ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
"""By NCCL's number, as `NCCL_ALGO_*`."""
PROTOCOLS = ("ll", "ll128", "simple")
"""By NCCL's number, as `NCCL_PROTO_*`."""
NAMES = {
    Collective.ALL_REDUCE: "AllReduce",
    Collective.ALL_GATHER: "AllGather",
    Collective.REDUCE_SCATTER: "ReduceScatter",
    Collective.BROADCAST: "Broadcast",
    Collective.REDUCE: "Reduce",
    Collective.ALL_TO_ALL: "AlltoAll",
}
"""As NCCL's lines call collectives; send and receive have no algorithm."""
NCCL = "nccl"
"""As torch.distributed calls NCCL and RCCL."""
_DEBUG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "TUNING,INIT"}
_FILE = "NCCL_DEBUG_FILE"
_LINE = re.compile(r"NCCL INFO (\w+):\s+\d+ Bytes -> Algo (\w+) proto (\w+)", re.IGNORECASE)
_ONE_NAME = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a call ran as, in lower case; None is not known."""

    algorithm: str | None = None
    protocol: str | None = None


def choice_in(text: str, collective: Collective) -> Choice:
    """Return the choice of the last call of a collective in debug output.

    >>> line = "h:1:2 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo 1 proto 2 time 9.1"
    >>> choice_in(line, Collective.ALL_REDUCE)
    Choice(algorithm='ring', protocol='simple')
    """
    name = NAMES.get(collective, "").lower()
    found = [match for match in _LINE.finditer(text) if match[1].lower() == name]
    if not found:
        return Choice()
    _, algorithm, protocol = found[-1].groups()
    return Choice(algorithm=_name(algorithm, ALGORITHMS), protocol=_name(protocol, PROTOCOLS))


def choice_forced(environment: Mapping[str, str]) -> Choice:
    """Return what NCCL_ALGO and NCCL_PROTO leave as the only choice.

    >>> choice_forced({"NCCL_ALGO": "Ring", "NCCL_PROTO": "^LL128"})
    Choice(algorithm='ring', protocol=None)
    """
    words = (environment.get(key, "") for key in ("NCCL_ALGO", "NCCL_PROTO"))
    only = [word.lower() if _ONE_NAME.fullmatch(word) else None for word in words]
    return Choice(algorithm=only[0], protocol=only[1])


def debug_variables(log: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make NCCL write its choices into a file beside a worker's log.

    None where the user has set any of them.

    >>> debug_variables(Path("logs/collectives-rank0.log"), {"NCCL_DEBUG": "WARN"})
    {}
    """
    if any(key in environment for key in (*_DEBUG, _FILE)):
        return {}
    return {**_DEBUG, _FILE: str(log.absolute().with_suffix(".nccl.%p"))}


class DebugFile:
    """What NCCL writes about its choices from the moment on that this is made."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._forced = choice_forced(environment)
        self._path = _path_of(environment.get(_FILE, ""))
        self._start = len(self._text())

    def choice(self, collective: Collective) -> Choice:
        """Return the choice of the last call since then; what is forced where nothing is said."""
        said = choice_in(self._text()[self._start :], collective)
        return Choice(
            algorithm=said.algorithm or self._forced.algorithm,
            protocol=said.protocol or self._forced.protocol,
        )

    def _text(self) -> str:
        try:
            return self._path.read_text(errors="replace") if self._path else ""
        except OSError:
            return ""


def _path_of(pattern: str) -> Path | None:
    """Return the file of this process: NCCL puts its host for %h and its process for %p."""
    if not pattern:
        return None
    return Path(pattern.replace("%h", socket.gethostname()).replace("%p", str(os.getpid())))


def _name(word: str, names: tuple[str, ...]) -> str:
    if word.isdigit():
        return names[int(word)] if int(word) < len(names) else word
    return word.lower()
