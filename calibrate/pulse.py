"""Whether all supervisors of a run are still there, and whether this one may go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from calibrate.board import GONE, Board, BoardGoneError, beat_name, host_name
from calibrate.identity import Identity

TICK = 0.1
"""Seconds between two looks at a worker."""
_BEAT = 1.0
"""Seconds between two looks at the board for signs of life."""


class RunEndedError(Exception):
    """The run cannot go on; the text says why and names the rank."""


class InterruptedRunError(RunEndedError):
    """A signal has asked this process to end; the text is the signal's name."""


@dataclass(slots=True, kw_only=True)
class Pulse:
    """Beats for this rank and listens to others: rank 0 to all, the others to rank 0.

    Beats are counted, not dated, so that clocks of hosts need not agree.
    """

    identity: Identity
    board: Board
    now: Callable[[], float]
    sleep: Callable[[float], None]
    interrupted: Callable[[], str]
    """Name of the signal that asks this process to end; empty while there is none."""
    silent: float
    """Seconds after which a rank whose beats do not change is taken for dead."""
    count: int = field(default=0)
    latest: float = field(default=-_BEAT)
    seen: dict[int, tuple[str | None, float]] = field(default_factory=dict)

    def tick(self) -> None:
        """Sleep for a moment.

        Raises:
            RunEndedError: a rank is gone, or has said that the run ends.
            InterruptedRunError: a signal came.
        """
        self.sleep(TICK)
        signal = self.interrupted()
        if signal:
            raise InterruptedRunError(signal)
        if self.identity.world.size > 1 and self.now() - self.latest >= _BEAT:
            self.latest = self.now()
            self._look()

    def say_gone(self, reason: str) -> None:
        """Tell all ranks that the run ends, unless one has told already."""
        try:
            if self.board.read([GONE]) == [None]:
                self.board.post(GONE, reason)
        except BoardGoneError:
            return

    def _look(self) -> None:
        rank, size = self.identity.rank, self.identity.world.size
        try:
            self.count += 1
            self.board.post(beat_name(rank), str(self.count))
            (gone,) = self.board.read([GONE])
            others = range(1, size) if rank == 0 else (0,)
            beats = self.board.read([beat_name(other) for other in others])
        except BoardGoneError as error:
            who = "the launcher" if rank == 0 else "rank 0, its host or the launcher"
            raise RunEndedError(f"{who} is gone: {error}") from error
        if gone is not None:
            raise RunEndedError(gone)
        dead = self._silent(zip(others, beats, strict=True))
        if dead:
            raise RunEndedError(self._dead(dead))

    def _silent(self, beats: Iterable[tuple[int, str | None]]) -> list[int]:
        """Return the ranks whose beat has not changed for too long; those yet to come are not."""
        now = self.now()
        dead = []
        for rank, beat in beats:
            known, since = self.seen.get(rank, (None, now))
            if beat != known or beat is None:
                self.seen[rank] = (beat, now)
            elif now - since > self.silent:
                dead.append(rank)
        return dead

    def _dead(self, ranks: list[int]) -> str:
        try:
            hosts = self.board.read([host_name(rank) for rank in ranks])
        except BoardGoneError:
            hosts = [None] * len(ranks)
        names = ", ".join(
            f"rank {rank} ({host or 'unknown host'})"
            for rank, host in zip(ranks, hosts, strict=True)
        )
        return f"{names} gave no sign of life for {self.silent:.0f} s: the process or host is gone"
