"""A lower bound of the step time of a layout, at a small part of the price of the estimate."""

from __future__ import annotations

from planner.mixed_bound import mixed_bound
from planner.passes import Passes
from simulator.api import Forecaster
from simulator.cost.step_costs import OVER_CHUNKS
from simulator.parallel.layout import DataParallel, ParallelLayout, Placement
from simulator.parallel.program import PassProgram, StepProgram
from simulator.parallel.segments import WHOLE_CHUNK, Chunk, Section
from simulator.schedule.profile import splits_backward
from simulator.schedule.registry import schedule_options
from simulator.schedule.shape import graph_shape
from simulator.schedule.tasks import GraphShape, Sync, Work, WorkKind

ROUNDING = 1e-9
"""Relative slack for sums that the estimate adds up in another order."""


def step_time_bound(forecaster: Forecaster, layout: ParallelLayout) -> float:
    """Return seconds that a step of a legal layout takes at least.

    Never above `Forecaster.step_time`: it is the length of a path through the task graph, or the
    work of one of its streams. Equal to it where stages are alike, transfers cost nothing and no
    parameters are gathered in every pass.
    """
    if forecaster.mixed is not None:
        return mixed_bound(forecaster, layout) * (1 - ROUNDING)
    return _Bound(forecaster, forecaster.program(layout)).seconds() * (1 - ROUNDING)


def quick_bound(forecaster: Forecaster, layout: ParallelLayout) -> float:
    """Return seconds that a step of a legal layout takes at least, at a part of that price again.

    It is what one stage computes. Where places follow each other round the stages and backward
    passes are whole, it is with the passes over the places before that stage around it, which the
    first micro-batch makes before it and the last one behind it.
    """
    if forecaster.mixed is not None:
        return mixed_bound(forecaster, layout) * (1 - ROUNDING)
    program, shape = forecaster.passes(layout), layout.pipeline
    splits, sections = _splits(program), program.sections
    seconds = [_least_work(forecaster, program, each, splits) for each in sections.distinct]
    rounds = program.micro_batches * shape.way / shape.places
    goes_round = shape.placement is Placement.LOOP and not splits
    found = before = 0.0
    for first, last, places in sections.runs:
        more = seconds[places[0]] if goes_round else 0.0
        before += more * (last - first)
        found = max(found, before + rounds * sum([seconds[number] for number in places]))
        before += more
    return found * (1 - ROUNDING)


def _least_work(
    forecaster: Forecaster, program: PassProgram, section: Section, splits: bool
) -> float:
    """Return seconds of both passes over a section, however the backward pass is run."""
    forward, backward = forecaster.costs.seconds(program, section)
    if splits:
        halves = forecaster.costs.split_segment(program, section)
        backward = min(backward, sum(half.seconds for half in halves))
    return forward + backward


def _splits(program: PassProgram) -> bool:
    """Whether a schedule puts weight gradients off."""
    layout = program.layout
    sizes = (layout.effective_schedule, layout.pp, layout.vpp, program.micro_batches)
    return splits_backward(*sizes, schedule_options(layout))


class _Bound:
    """The work of one layout, and what of it is certain to come one after another."""

    def __init__(self, forecaster: Forecaster, program: StepProgram) -> None:
        self.costs = forecaster.costs
        self.program = program
        self.shape: GraphShape = graph_shape(program, averages=True)
        self.splits = _splits(program)
        self.carried: dict[int, float] = {}
        self.known: dict[tuple[WorkKind, int, int], float] = {}

    def seconds(self) -> float:
        shape = self.shape
        stages = sorted({stage for run in self.program.runs_of_stages() for stage in run})
        passes = self._passes().least(shape.micro_batches, stages)
        compute = self._first_wait() + passes + self._last_reduction() + self._tied(0)
        traffic = max(self._traffic(stage) + self._tied(stage) for stage in stages)
        alike = [first for first, _ in self.program.runs_of_stages()]
        return max(compute, traffic) + max(self._update(stage) for stage in alike)

    def _passes(self) -> Passes:
        program, shape = self.program, self.shape
        distinct = {id(chunk): chunk for chunk in program.chunks}
        pairs = {key: self._pair(chunk) for key, chunk in distinct.items()}
        seconds = [pairs[id(chunk)] for chunk in program.chunks]
        halves = [self._halves(chunk) for chunk in program.chunks] if self.splits else None
        return Passes(
            schedule=shape.schedule,
            pp=shape.pp,
            vpp=shape.vpp,
            forward=tuple(forward for forward, _ in seconds),
            backward=tuple(backward for _, backward in seconds),
            split=(tuple(i for i, _ in halves), tuple(w for _, w in halves)) if halves else None,
            send=self._work(WorkKind.SEND_FORWARD, 0) if shape.pp > 1 else 0.0,
            blocking=shape.blocking_send,
            options=shape.options,
        )

    def _pair(self, chunk: Chunk) -> tuple[float, float]:
        forward, backward = self.costs.segment(self.program, chunk.whole)
        return forward.seconds, backward.seconds

    def _halves(self, chunk: Chunk) -> tuple[float, float]:
        of_input, of_weights = self.costs.split_segment(self.program, chunk.whole)
        return of_input.seconds, of_weights.seconds

    def _first_wait(self) -> float:
        """The first pass waits for the parameters of its first segment."""
        waits = self.shape.head_gather or self.shape.gathers
        return self._work(WorkKind.GATHER, 0, segment=0) if waits else 0.0

    def _last_reduction(self) -> float:
        """Gradients still on their way when the last backward pass, at place 0, is over.

        Where weight gradients are put off the last pass is any stage's.
        """
        if self.splits:
            return min(map(self._reduced_last, range(self.shape.pp)))
        match self.shape.sync:
            case Sync.NEVER:
                return 0.0
            case Sync.AFTER:
                return self._reduced_last(0)
            case Sync.LAST_PASS | Sync.EVERY_PASS:
                computed = reduced = 0.0
                for segment in reversed(range(self.shape.segments[0])):
                    computed += self._work(WorkKind.BACKWARD, 0, segment=segment)
                    reduced = max(computed, reduced)
                    reduced += self._work(WorkKind.REDUCE, 0, segment=segment)
                return reduced - computed

    def _reduced_last(self, stage: int) -> float:
        """Gradients that a stage reduces after its last pass at least."""
        places = self.shape.pipeline.places_of(stage)
        match self.shape.sync:
            case Sync.NEVER:
                return 0.0
            case Sync.AFTER:
                return sum(self._work(WorkKind.REDUCE, place) for place in places)
            case Sync.LAST_PASS | Sync.EVERY_PASS:
                return min(self._work(WorkKind.REDUCE, place, segment=0) for place in places)

    def _traffic(self, stage: int) -> float:
        """All that the data stream of a stage carries in every pass; it never does two at once."""
        shape = self.shape
        if shape.sync is not Sync.EVERY_PASS:
            return 0.0
        once = sum(self._carried(place) for place in shape.pipeline.places_of(stage))
        return once * shape.micro_batches

    def _carried(self, place: int) -> float:
        """What one pass each way over a place puts on the data stream; of like chunks the same."""
        key = id(self.program.chunks[place])
        if key not in self.carried:
            once = 0.0
            for segment in range(self.shape.segments[place]):
                once += self._work(WorkKind.REDUCE, place, segment=segment)
                if self.shape.gathers:
                    once += 2 * self._work(WorkKind.GATHER, place, segment=segment)
            self.carried[key] = once
        return self.carried[key]

    def _tied(self, stage: int) -> float:
        """The embedding's gradient, for which only the first and the last stage wait."""
        ends = stage in (0, self.shape.pp - 1)
        return self._work(WorkKind.TIED_REDUCE, 0) if self.shape.tied and ends else 0.0

    def _update(self, stage: int) -> float:
        """The optimizer, and what spreads the new parameters; of local SGD the mean step's."""
        shape, layout = self.shape, self.program.layout
        seconds = self.costs.work(self.program, Work(WorkKind.OPTIMIZER, stage)).seconds
        if shape.tail is WorkKind.JOIN:
            return seconds
        places = shape.pipeline.places_of(stage)
        tail = sum(self._work(shape.tail, place) for place in places)
        steps = layout.sync_every if layout.data_parallel is DataParallel.LOCAL_SGD else 1
        return seconds + tail / steps

    def _work(self, kind: WorkKind, place: int, *, segment: int = WHOLE_CHUNK) -> float:
        """Seconds of a work; over like chunks those of gradients and parameters are the same."""
        key = (kind, id(self.program.chunks[place]), segment)
        found = self.known.get(key)
        if found is None:
            work = Work(kind, self.shape.pipeline.stage(place), place, segment)
            found = self.costs.work(self.program, work).seconds
            if kind in OVER_CHUNKS:
                self.known[key] = found
        return found
