"""How long the passes of a pipeline take at least, without playing its schedule.

With the places (virtual stages) 0 to P - 1, and a stage that holds the places r, r + pp, ..., l,
the stage cannot

* start before the first micro-batch has passed the places before it,
* start its first backward pass before that micro-batch has come back from the last place,
* let the step end before its last forward pass has gone on to the last place and back to place 0,
* do in between anything but its own passes, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from simulator.parallel.layout import ScheduleName
from simulator.schedule.registry import WARM_UPS


@dataclass(frozen=True, kw_only=True)
class Passes:
    """The passes and transfers of one micro-batch, in seconds."""

    schedule: ScheduleName
    pp: int
    vpp: int
    forward: tuple[float, ...]
    """Of the forward pass at each place."""
    backward: tuple[float, ...]
    send: float
    """Of a transfer to a neighbouring place; 0 with one stage."""
    blocking: bool
    """Whether a stage computes nothing while it sends."""

    @property
    def places(self) -> int:
        """Virtual stages."""
        return self.pp * self.vpp

    @cached_property
    def to(self) -> tuple[float, ...]:
        """Start of the forward pass at each place on an idle pipeline, and last the end of all."""
        starts = [0.0, *accumulate(f + self.send for f in self.forward)]
        return (*starts[:-1], starts[-1] - self.send)

    @cached_property
    def back(self) -> tuple[float, ...]:
        """From the end of the backward pass at each place to that at place 0, on an idle pipeline.

        The last entry is counted from the end of the last forward pass.
        """
        ends = [0.0, *accumulate(b + self.send for b in self.backward[:-1])]
        return (*ends, ends[-1] + self.backward[-1])

    def least(self, micro_batches: int, stages: Sequence[int]) -> float:
        """Return seconds from the first pass to the end of the last one, at least.

        `stages` are those to look at, the last one among them: the ends of runs of equal stages
        will do, as all that is certain grows or falls evenly along a run.
        """
        alone = max(self.stage(r, micro_batches) for r in stages)
        return max(alone, self.round_trips(micro_batches, stages))

    def stage(self, stage: int, micro_batches: int) -> float:
        """Return what the passes of one stage alone make certain.

        The larger of waiting and working before the first backward pass, the work up to the last
        forward pass, the larger of working and waiting after it.
        """
        last = self.places - self.pp + stage
        sent_on = self.send if self.blocking and last < self.places - 1 else 0.0
        sent_back = self.send if self.blocking and stage else 0.0
        onward = self.to[-1] - self.to[last] - self.forward[last] + self.back[-1] - sent_on
        leave = self.back[stage] - sent_back
        before, between, after = self._work(stage, micro_batches)
        start = self.to[stage] + before
        first_backward = self.to[-1] + self.back[-1] - self.back[last] - self.backward[last]
        if between:
            return max(start, first_backward) + between + max(after + leave, onward)
        return max(max(start, first_backward) + after + leave, start + onward)

    def round_trips(self, micro_batches: int, stages: Sequence[int]) -> float:
        """Return what 1F1B makes certain where transfers do not hide.

        Stage s starts micro-batch i + w only after the backward pass of i, w = pp - s, so that w
        micro-batches take at least one trip to the last stage and back. As many trips as there are
        come before the rest is bounded by the busiest or the last stage.
        """
        if self.schedule is not ScheduleName.ONE_F_ONE_B or self.blocking or not self.send:
            return 0.0
        work = [f + b for f, b in zip(self.forward, self.backward, strict=True)]
        found = 0.0
        for then in {work.index(max(work)), self.pp - 1}:
            for s in (s for s in stages if s <= then):
                width = self.pp - s
                trip = self.to[-1] - self.to[s] + self.back[-1] - self.back[s]
                for left in (1, self.pp - then + 1):
                    trips = max(0, (micro_batches - left) // width)
                    rest = self.stage(then, micro_batches - trips * width)
                    found = max(found, trips * trip + rest)
        return found

    def _work(self, stage: int, micro_batches: int) -> tuple[float, float, float]:
        """Return a stage's work before its first backward pass, up to the last forward, and after.

        The second is 0 where all forward passes come first.
        """
        forward = self.forward[stage :: self.pp]
        backward = self.backward[stage :: self.pp]
        if self.blocking and self.send:
            last = self.places - 1
            forward = tuple(
                f + self.send * (stage + c * self.pp < last) for c, f in enumerate(forward)
            )
            backward = tuple(
                b + self.send * (stage + c * self.pp > 0) for c, b in enumerate(backward)
            )
        everything = micro_batches * self.vpp
        warm_up = WARM_UPS[self.schedule](stage, self.pp, self.vpp, micro_batches)
        before = min(warm_up + 1, everything)
        all_forward, all_backward = micro_batches * sum(forward), micro_batches * sum(backward)
        if before == everything:
            return all_forward, 0.0, all_backward
        first = self._sum(before, forward)
        paired = self._sum(everything - before, backward[::-1])
        return first, all_forward - first + paired, all_backward - paired

    def _sum(self, count: int, seconds: tuple[float, ...]) -> float:
        """Return the seconds of a stage's first `count` passes, in groups of pp micro-batches."""
        groups, rest = divmod(count, self.pp * self.vpp)
        inside = (min(max(rest - c * self.pp, 0), self.pp) for c in range(self.vpp))
        return sum((groups * self.pp + n) * s for n, s in zip(inside, seconds, strict=True))
