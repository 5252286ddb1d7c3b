"""The schedules that warm up with forward passes and then alternate, in closed form.

What their lists of passes say of memory and time is known without writing them down.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.parallel.layout import ScheduleName
from simulator.schedule.interleaved import warm_up_passes
from simulator.schedule.registry import PLAIN, ScheduleOptions


class Rounds(NamedTuple):
    """One stage: `warm_up` forward passes, then forward and backward in turn, then backward.

    Forward passes run `group` micro-batches of each chunk in turn, backward passes the chunks the
    other way round. Which of its micro-batches a chunk takes first makes no difference here.
    """

    vpp: int
    micro_batches: int
    group: int
    warm_up: int

    @property
    def passes(self) -> int:
        """Forward passes of the step."""
        return self.vpp * self.micro_batches

    @property
    def ahead(self) -> int:
        """Forward passes before the first backward pass."""
        return min(self.warm_up + 1, self.passes)

    def forward_pass(self, number: int) -> tuple[int, int]:
        """Return micro-batch and chunk of a forward pass, counted from 0.

        >>> Rounds(vpp=2, micro_batches=3, group=2, warm_up=0).forward_pass(4)
        (2, 0)
        """
        full, rest = divmod(number, self.vpp * self.group)
        start = full * self.group
        chunk, inside = divmod(rest, min(self.group, self.micro_batches - start))
        return start + inside, chunk

    def of_chunks(self, passes: int) -> tuple[int, ...]:
        """Return how many of the first `passes` forward passes each chunk has.

        >>> Rounds(vpp=2, micro_batches=4, group=2, warm_up=0).of_chunks(5)
        (3, 2)
        """
        full, rest = divmod(passes, self.vpp * self.group)
        start = full * self.group
        size = min(self.group, self.micro_batches - start)
        return tuple(start + min(max(rest - c * size, 0), size) for c in range(self.vpp))

    def alive(self) -> NDArray[np.int64]:
        """Return micro-batches alive of each chunk after each forward pass before a backward one.

        A row for each such pass, first to last; the first is pass `ahead` - 1.
        """
        whole, rest = divmod(self.micro_batches, self.group)
        chunks = np.arange(self.vpp)
        order = [*np.tile(np.repeat(chunks, self.group), whole), *np.repeat(chunks, rest)]
        done = np.zeros((self.passes + 1, self.vpp), dtype=np.int64)
        np.cumsum(np.array(order)[:, None] == chunks, axis=0, out=done[1:])
        found: NDArray[np.int64] = done[self.ahead :] - done[: len(done) - self.ahead, ::-1]
        return found


def rounds_of(
    name: ScheduleName,
    pp: int,
    vpp: int,
    micro_batches: int,
    *,
    options: ScheduleOptions = PLAIN,
    stage: int,
) -> Rounds | None:
    """Return the rounds of a stage, or None where the schedule is no such one.

    A stage warms up at least as long as those behind it, so that where it holds as many bytes a
    micro-batch it holds at least as much at its fullest.
    """
    passes, group = vpp * micro_batches, micro_batches
    match name:
        case ScheduleName.GPIPE | ScheduleName.LOOPED_BFS:
            warm_up = passes
        case ScheduleName.ONE_F_ONE_B:
            warm_up = pp - stage - 1 + options.extra
        case ScheduleName.INTERLEAVED:
            group = options.group_size or pp
            warm_up = options.extra + warm_up_passes(
                stage, pp, vpp, micro_batches, options.group_size
            )
        case _:
            return None
    return Rounds(vpp, micro_batches, min(group, micro_batches), min(warm_up, passes))
