"""How long the passes of a pipeline take at least, without playing its schedule.

A stage cannot

* start before the first micro-batch has passed the places before it,
* start its first backward pass before that micro-batch has come back from the last place,
* let the step end before its last forward pass has gone on to the last place and all the way back,
  or its last input gradient back to the first place,
* do in between anything but its own passes, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from simulator.parallel.layout import ScheduleName
from simulator.parallel.placement import PipelineShape
from simulator.schedule.action import ActionKind
from simulator.schedule.profile import Counts, stage_profile
from simulator.schedule.registry import PLAIN, ScheduleOptions, pipeline_shape

_Seconds = dict[ActionKind, tuple[float, ...]]


@dataclass(frozen=True, kw_only=True)
class Passes:
    """The passes and transfers of one micro-batch, in seconds."""

    schedule: ScheduleName
    pp: int
    vpp: int
    forward: tuple[float, ...]
    """Of the forward pass at each place."""
    backward: tuple[float, ...]
    split: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    """Of the input and of the weight gradients at each place, where the schedule has them apart."""
    send: float
    """Of a transfer to a neighbouring place; 0 with one stage."""
    blocking: bool
    """Whether a stage computes nothing while it sends: then its passes take so much longer."""
    options: ScheduleOptions = PLAIN

    @cached_property
    def pipeline(self) -> PipelineShape:
        """Which stage runs which place."""
        return pipeline_shape(self.schedule, self.pp, self.vpp, self.options)

    @cached_property
    def seconds(self) -> _Seconds:
        """Of each kind of pass at each place, with the transfer that blocks it."""
        shape, blocks = self.pipeline, self.send * self.blocking
        on = [blocks * sends for sends in shape.sending_on]
        back = [blocks * sends for sends in shape.sending_back]
        whole = tuple(b + s for b, s in zip(self.backward, back, strict=True))
        of_input, of_weights = self.split or (self.backward, (0.0,) * shape.places)
        return {
            ActionKind.FORWARD: tuple(f + s for f, s in zip(self.forward, on, strict=True)),
            ActionKind.BACKWARD: whole,
            ActionKind.BACKWARD_INPUT: tuple(i + s for i, s in zip(of_input, back, strict=True)),
            ActionKind.BACKWARD_WEIGHT: of_weights,
        }

    @cached_property
    def returns(self) -> tuple[float, ...]:
        """Of what a place does at least before its gradient goes back: all, or the input's part."""
        kinds = (ActionKind.BACKWARD, ActionKind.BACKWARD_INPUT)
        return tuple(map(min, *(self.seconds[kind] for kind in kinds)))

    @cached_property
    def hops(self) -> tuple[float, ...]:
        """Seconds between the passes of each place and of the one behind it."""
        send = 0.0 if self.blocking else self.send
        return tuple([send if sends else 0.0 for sends in self.pipeline.sending_on])

    @cached_property
    def to(self) -> tuple[float, ...]:
        """Start of the forward pass at each place on an idle pipeline."""
        forward, way = self.seconds[ActionKind.FORWARD], self.pipeline.way
        starts, ready = [], 0.0
        for place, (seconds, hop) in enumerate(zip(forward, self.hops, strict=True)):
            starts.append(ready if place % way else 0.0)
            ready = starts[place] + seconds + hop
        return tuple(starts)

    @cached_property
    def gradient(self) -> tuple[float, ...]:
        """Start of the first backward pass at each place on an idle pipeline."""
        forward, way = self.seconds[ActionKind.FORWARD], self.pipeline.way
        ready, behind = list(self.to), 0.0
        for place in reversed(range(self.pipeline.places)):
            if (place + 1) % way == 0:
                ready[place] += forward[place]
            else:
                ready[place] = behind + self.hops[place]
            behind = ready[place] + self.returns[place]
        return tuple(ready)

    @cached_property
    def leave(self) -> tuple[float, ...]:
        """From the end of a backward pass at each place to that at the first place."""
        way = self.pipeline.way
        ends, rest = [], 0.0
        for place, (seconds, hop) in enumerate(zip(self.returns, self.hops, strict=True)):
            ends.append(rest if place % way else 0.0)
            rest = hop + seconds + ends[place]
        return tuple(ends)

    def onward(self, place: int) -> float:
        """From the end of a forward pass at a place to its backward pass at the first place."""
        first = place - place % self.pipeline.way
        back = self.gradient[first] + self.returns[first]
        return back - self.to[place] - self.seconds[ActionKind.FORWARD][place]

    def least(self, micro_batches: int, stages: Sequence[int]) -> float:
        """Return seconds from the first pass to the end of the last one, at least.

        `stages` are those that are looked at; the more, the closer.
        """
        found = max(self.stage(stage, micro_batches) for stage in stages)
        return max(found, self.round_trips(micro_batches, stages))

    def stage(self, stage: int, micro_batches: int) -> float:
        """Return what the passes of one stage alone make certain."""
        sizes = (self.schedule, self.pp, self.vpp, micro_batches, self.options)
        profile = stage_profile(*sizes, stage=stage)
        before = self._sum(profile.before)
        start = self.to[profile.first]
        first_back = max(start + before, self.gradient[profile.first_back])
        end = first_back + self._sum(profile.total) - before
        last_back = end - self._sum(profile.trailing)
        last_forward = end - self._sum(profile.after)
        if profile.forward_first:
            last_forward = start + before
        return max(
            end,
            last_back + self.leave[profile.last_back],
            last_forward + self.onward(profile.last_forward),
        )

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
                trip = self.gradient[s] + self.backward[s] - self.to[s]
                for left in (1, self.pp - then + 1):
                    trips = max(0, (micro_batches - left) // width)
                    rest = self.stage(then, micro_batches - trips * width)
                    found = max(found, trips * trip + rest)
        return found

    def _sum(self, counts: Counts) -> float:
        seconds = self.seconds
        return sum([seconds[kind][place] * count for (kind, place), count in counts])
