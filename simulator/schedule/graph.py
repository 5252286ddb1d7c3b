"""How the task graph of a step is built from the action lists of its schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from simulator.parallel.layout import ScheduleName
from simulator.parallel.placement import Placement
from simulator.parallel.segments import WHOLE_CHUNK
from simulator.schedule.action import Action, ActionKind
from simulator.schedule.registry import build_schedule
from simulator.schedule.tasks import (
    NO_TASK,
    STREAMS,
    GraphShape,
    StreamKind,
    Sync,
    TaskGraph,
    Work,
    WorkKind,
)
from simulator.schedule.verify import PassNumbers, in_dependency_order

_MAX_WAITS = 2
"""Explicit dependencies a task; more are joined first."""
_KINDS = len(WorkKind)


@lru_cache(maxsize=32)
def build_graph(shape: GraphShape) -> TaskGraph:
    """Return the task graph of a step of this shape."""
    return _Builder(shape).build()


@dataclass(slots=True)
class _Rank:
    """What the builder remembers of one pipeline rank."""

    last_compute: int = NO_TASK
    last_data: int = NO_TASK
    last_pass: ActionKind | None = None
    gathered: list[int] = field(default_factory=list)
    """Compute tasks that used a gathered segment, in order."""


_WORK_KINDS = {
    ActionKind.FORWARD: WorkKind.FORWARD,
    ActionKind.BACKWARD: WorkKind.BACKWARD,
    ActionKind.BACKWARD_INPUT: WorkKind.BACKWARD_INPUT,
    ActionKind.BACKWARD_WEIGHT: WorkKind.BACKWARD_WEIGHT,
}
_TRANSFERS = (
    (WorkKind.SEND_BACKWARD, WorkKind.SEND_FORWARD),
    (WorkKind.EXCHANGE_BACKWARD, WorkKind.EXCHANGE_FORWARD),
)
"""By whether it is an exchange, and whether it goes forward."""
_YIELDS_GRADIENTS = (ActionKind.BACKWARD, ActionKind.BACKWARD_WEIGHT)


class _Builder:
    """Owns the growing lists of one graph."""

    def __init__(self, shape: GraphShape) -> None:
        self.shape = shape
        self.index: dict[Work, int] = {}
        self.columns: tuple[list[int], ...] = ([], [], [], [], [])
        self.ranks = [_Rank() for _ in range(shape.pp)]
        self.pipeline = pipeline = shape.pipeline
        self.numbers = PassNumbers(pipeline, shape.micro_batches)
        places = range(pipeline.places)
        self.stages = [pipeline.stage(place) for place in places]
        self.sends = {
            ActionKind.FORWARD: pipeline.sending_on,
            ActionKind.BACKWARD: pipeline.sending_back,
        }
        self.sends[ActionKind.BACKWARD_INPUT] = self.sends[ActionKind.BACKWARD]
        self.data_stream = StreamKind.COMPUTE if shape.blocking_data else StreamKind.DATA
        self.arrival = [NO_TASK] * self.numbers.count
        self.head_gathers: dict[int, list[int]] = {}
        self.chunk_works: dict[int, Work] = {}

    def build(self) -> TaskGraph:
        shape = self.shape
        schedule = build_schedule(
            shape.schedule, shape.pp, shape.vpp, shape.micro_batches, shape.options
        )
        if shape.head_gather:
            self._gather_at_start()
        last_pass = {
            (stage, action.chunk): action
            for stage, actions in enumerate(schedule)
            for action in actions
            if action.kind in _YIELDS_GRADIENTS
        }
        for action in in_dependency_order(schedule, shape.vpp, self.pipeline.placement):
            is_last = last_pass[action.stage, action.chunk] is action
            self._pass(action, is_last)
        self._close_step()
        work, stream, first, second, micro_batch = map(tuple, self.columns)
        return TaskGraph(
            works=tuple(self.index),
            work=work,
            stream=stream,
            first=first,
            second=second,
            micro_batch=micro_batch,
            pp=shape.pp,
        )

    def _add(self, work: Work, stream: StreamKind, *after: int, micro_batch: int = NO_TASK) -> int:
        """Append a task and return its number; joins what it waits for down to two."""
        waits = [task for task in after if task != NO_TASK]
        while len(waits) > _MAX_WAITS:
            joined = self._add(Work(WorkKind.JOIN, work.stage), StreamKind.DATA, *waits[:2])
            waits = [*waits[2:], joined]
        first = waits[0] if waits else NO_TASK
        second = waits[1] if len(waits) > 1 else NO_TASK
        return self._append(work, stream, first, second, micro_batch)

    def _append(
        self, work: Work, stream: StreamKind, first: int, second: int, micro_batch: int
    ) -> int:
        """Append a task; called once for every task of the graph."""
        index, (works, lanes, firsts, seconds, micro_batches) = self.index, self.columns
        task, stage = len(works), work.stage
        works.append(index.setdefault(work, len(index)))
        lanes.append(STREAMS * stage + stream)
        firsts.append(first)
        seconds.append(second)
        micro_batches.append(micro_batch)
        if stream is StreamKind.COMPUTE:
            self.ranks[stage].last_compute = task
        elif stream is StreamKind.DATA:
            self.ranks[stage].last_data = task
        return task

    def _gather_at_start(self) -> None:
        """Gather updated parameters segment by segment; the first forward pass waits for each."""
        for place, segments in enumerate(self.shape.segments):
            stage = self.stages[place]
            self.head_gathers[place] = [
                self._add(Work(WorkKind.GATHER, stage, place, segment), StreamKind.DATA)
                for segment in range(segments)
            ]

    def _pass(self, action: Action, is_last: bool) -> None:
        shape = self.shape
        place = self.numbers.place[action.stage][action.chunk]
        needed = self.numbers.needed(action)
        arrival = self.arrival[needed] if needed >= 0 else NO_TASK
        if shape.on_request:
            arrival = self._request(action, place, arrival)
        forward = action.kind is ActionKind.FORWARD
        gathers_anew = shape.gathers and action.kind is not ActionKind.BACKWARD_WEIGHT
        reduces = action.kind in _YIELDS_GRADIENTS and (
            shape.sync is Sync.EVERY_PASS or (shape.sync is Sync.LAST_PASS and is_last)
        )
        gathers = self.head_gathers.pop(place, []) if forward else []
        if gathers_anew or reduces or gathers:
            done = self._segmented(action, place, arrival, gathers, reduces=reduces)
        else:
            work = self._chunk_work(_WORK_KINDS[action.kind], place)
            done = self._append(work, StreamKind.COMPUTE, arrival, NO_TASK, action.micro_batch)
        if action.kind is not ActionKind.BACKWARD_WEIGHT:
            done = self._send(action, place, done)
        self.arrival[self.numbers.of(action)] = done

    def _segmented(
        self, action: Action, place: int, arrival: int, gathers: list[int], *, reduces: bool
    ) -> int:
        """Add a pass segment by segment, each after its own of `gathers` or a gather of its own.

        The gather of one is issued before the reduction of the one before, as FSDP's backward
        prefetch does.
        """
        forward = action.kind is ActionKind.FORWARD
        gathers_anew = self.shape.gathers and action.kind is not ActionKind.BACKWARD_WEIGHT
        kind = _WORK_KINDS[action.kind]
        count = self.shape.segments[place]
        order = range(count) if forward else reversed(range(count))
        pending = done = NO_TASK
        for segment in order:
            gather = gathers[segment] if gathers else NO_TASK
            if gathers_anew:
                gather = self._gather(action.stage, place, segment)
            if pending != NO_TASK:
                self._reduce(action.stage, place, segment + 1, pending)
            work = Work(kind, action.stage, place, segment)
            micro_batch = action.micro_batch
            done = self._add(work, StreamKind.COMPUTE, arrival, gather, micro_batch=micro_batch)
            if gathers_anew or gather != NO_TASK:
                self.ranks[action.stage].gathered.append(done)
            arrival, pending = NO_TASK, done if reduces else NO_TASK
        if pending != NO_TASK:
            reduced = self._reduce(action.stage, place, 0, pending)
            return reduced if self.shape.send_after_reduce else done
        return done

    def _gather(self, stage: int, place: int, segment: int) -> int:
        used = self.ranks[stage].gathered
        limit = len(used) - 1 - self.shape.prefetch
        after = used[limit] if limit >= 0 else NO_TASK
        return self._add(Work(WorkKind.GATHER, stage, place, segment), self.data_stream, after)

    def _reduce(self, stage: int, place: int, segment: int, after: int) -> int:
        return self._add(Work(WorkKind.REDUCE, stage, place, segment), self.data_stream, after)

    def _send(self, action: Action, place: int, done: int) -> int:
        """Add the transfer to the next stage; return the task after which its data are there."""
        if self.shape.on_request or not self.sends[action.kind][place]:
            return done
        forward = action.kind is ActionKind.FORWARD
        kind = WorkKind.SEND_FORWARD if forward else WorkKind.SEND_BACKWARD
        stream = StreamKind.COMPUTE if self.shape.blocking_send else StreamKind.SEND
        work = self._chunk_work(kind, place)
        return self._append(work, stream, done, NO_TASK, action.micro_batch)

    def _request(self, action: Action, place: int, produced: int) -> int:
        """Add the transfer that a pass asks for; return the task after which its data are there.

        It runs on the compute stream of the receiver. In 1F1B sends and receives between two
        stages are issued together, so that one behind a pass in the other direction is an exchange.
        """
        rank, shape = self.ranks[action.stage], self.shape
        forward = action.kind is ActionKind.FORWARD
        before, rank.last_pass = rank.last_pass, action.kind
        source = place - 1 if forward else place + 1
        if action.kind is ActionKind.BACKWARD_WEIGHT or not 0 <= source < len(self.stages):
            return produced
        if not self.sends[action.kind][source]:
            return produced
        turns = before is not None and (before is ActionKind.FORWARD) is not forward
        exchange = turns and shape.schedule is ScheduleName.ONE_F_ONE_B
        kind = _TRANSFERS[exchange][forward]
        work = Work(kind, action.stage, source)
        return self._append(work, StreamKind.COMPUTE, produced, NO_TASK, action.micro_batch)

    def _chunk_work(self, kind: WorkKind, place: int) -> Work:
        """Return the work of a whole chunk; one and the same object for all micro-batches."""
        key = _KINDS * place + kind
        work = self.chunk_works.get(key)
        if work is None:
            work = self.chunk_works[key] = Work(kind, self.stages[place], place)
        return work

    def _reduce_chunk(self, place: int) -> None:
        """Reduce a chunk whole; where another stage holds its other copy, wait for that one too."""
        stage = self.stages[place]
        after = [self.ranks[stage].last_compute]
        if self.pipeline.placement is Placement.BIDIRECTIONAL:
            after.append(self.ranks[self.shape.pp - 1 - stage].last_compute)
        self._add(Work(WorkKind.REDUCE, stage, place, WHOLE_CHUNK), StreamKind.DATA, *after)

    def _close_step(self) -> None:
        """Reduce what is left, join all stages for the gradient norm, update, spread parameters."""
        shape = self.shape
        if shape.sync is Sync.AFTER:
            for place in reversed(range(self.pipeline.places)):
                self._reduce_chunk(place)
        if shape.tied:
            ends = [rank.last_compute for rank in (self.ranks[0], self.ranks[-1])]
            ends += [self.ranks[0].last_data, self.ranks[-1].last_data]
            for stage in (0, shape.pp - 1):
                self._add(Work(WorkKind.TIED_REDUCE, stage), StreamKind.DATA, *ends)
        waits = [task for rank in self.ranks for task in (rank.last_compute, rank.last_data)]
        norm = self._add(Work(WorkKind.JOIN, 0), StreamKind.DATA, *waits)
        for stage in range(shape.pp):
            update = self._add(Work(WorkKind.OPTIMIZER, stage), StreamKind.COMPUTE, norm)
            if shape.tail is not WorkKind.JOIN:
                for place in self.pipeline.places_of(stage):
                    self._add(Work(shape.tail, stage, place), StreamKind.DATA, update)
