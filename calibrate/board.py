"""The board on which supervisors leave each other short texts; all talk between them is this.

Nothing here waits: a text is there or it is not, so that no supervisor can be made to hang.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol


class Board(Protocol):
    """Texts by name that all ranks of a run see."""

    def post(self, name: str, text: str) -> None:
        """Put a text there, in place of an earlier one. Raises `BoardGoneError`."""

    def read(self, names: Sequence[str]) -> list[str | None]:
        """Return the text of each name; None where there is none. Raises `BoardGoneError`."""


class BoardGoneError(Exception):
    """Whoever holds the board has ended, or cannot be reached."""


@dataclass(slots=True)
class LocalBoard:
    """The board of one process."""

    texts: dict[str, str] = field(default_factory=dict)

    def post(self, name: str, text: str) -> None:
        """Put a text there, in place of an earlier one."""
        self.texts[name] = text

    def read(self, names: Sequence[str]) -> list[str | None]:
        """Return the text of each name; None where there is none."""
        return [self.texts.get(name) for name in names]


GONE = "gone"
"""Why the run ends; posted once, by whoever finds out."""


def host_name(rank: int) -> str:
    """Return the name under which a rank says which host it is on."""
    return f"host/{rank}"


def beat_name(rank: int) -> str:
    """Return the name under which a rank counts up while it lives."""
    return f"beat/{rank}"


def left_name(rank: int) -> str:
    """Return the name under which a rank says that it has read the last task."""
    return f"left/{rank}"


def facts_name(rank: int) -> str:
    """Return the name under which a rank says what its device is."""
    return f"facts/{rank}"


def task_name(number: int) -> str:
    """Return the name of a task, in the order in which rank 0 gives them."""
    return f"task/{number}"


def lost_name(number: int) -> str:
    """Return the name under which a rank says that its worker ended too early."""
    return f"lost/{number}"


def stop_name(number: int) -> str:
    """Return the name under which rank 0 tells all to end their workers."""
    return f"stop/{number}"


def report_name(number: int, rank: int) -> str:
    """Return the name of a rank's report on its worker."""
    return f"report/{number}/{rank}"
