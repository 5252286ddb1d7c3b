"""How the task graph of a step is built from the action lists of its schedule."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from simulator.parallel.layout import ScheduleName
from simulator.parallel.placement import Placement
from simulator.parallel.segments import WHOLE_CHUNK
from simulator.schedule.action import Action, ActionKind, StageActions
from simulator.schedule.registry import build_schedule
from simulator.schedule.task_rows import FIELDS, TaskRows
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
from simulator.schedule.verify import PassNumbers, run_in_turn


@lru_cache(maxsize=32)
def build_graph(shape: GraphShape) -> TaskGraph:
    """Return the task graph of a step of this shape."""
    return _Builder(shape).build()


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
_NOT_ADDED = NO_TASK - 1
"""What stands for the arrival of a pass that is not in the graph yet."""
_NO_WORK = -1


class _Recipe(NamedTuple):
    """How the passes of one kind over one chunk are added; lanes are as in `TaskGraph.stream`."""

    place: int
    own: int
    """Number of the pass of micro-batch 0."""
    needed: int
    """Number of the pass that it waits for, or -1."""
    lane: int
    send_lane: int
    work: int = _NO_WORK
    """Of a pass that is one task; `_NO_WORK` until one has been added, and where none ever is."""
    send: int = _NO_WORK
    """Of the transfer that follows it."""


class _Builder:
    """Owns one graph while it grows."""

    def __init__(self, shape: GraphShape) -> None:
        self.shape, self.pipeline = shape, shape.pipeline
        self.tasks = TaskRows(shape.pp)
        self.numbers = PassNumbers(self.pipeline, shape.micro_batches)
        sending_back = self.pipeline.sending_back
        self.sends = {
            ActionKind.FORWARD: self.pipeline.sending_on,
            ActionKind.BACKWARD: sending_back,
            ActionKind.BACKWARD_INPUT: sending_back,
            ActionKind.BACKWARD_WEIGHT: (False,) * self.pipeline.places,
        }
        self.send_stream = StreamKind.COMPUTE if shape.blocking_send else StreamKind.SEND
        self.data_stream = StreamKind.COMPUTE if shape.blocking_data else StreamKind.DATA
        self.recipes = [self._bare_recipes(stage) for stage in range(shape.pp)]
        self.arrival = [_NOT_ADDED] * self.numbers.count
        """Of each pass the task after which what it yields is where it is needed."""
        self.head_gathers: dict[int, list[int]] = {}
        self.gathered: list[list[int]] = [[] for _ in range(shape.pp)]
        """[stage] compute tasks that used a gathered segment, in order."""
        self.kept: set[int] = set()
        """Places whose parameters are still there from the pass before; see `reduces_once`."""
        self.last_pass: list[ActionKind | None] = [None] * shape.pp
        self.segment_works: dict[tuple[WorkKind, int], list[int]] = {}

    def _bare_recipes(self, stage: int) -> dict[ActionKind, list[_Recipe]]:
        places, first = self.pipeline.places_of(stage), STREAMS * stage
        lanes = first + StreamKind.COMPUTE, first + self.send_stream
        return {
            kind: [
                _Recipe(place, *self.numbers.of_first(stage, kind, chunk), *lanes)
                for chunk, place in enumerate(places)
            ]
            for kind in ActionKind
        }

    def build(self) -> TaskGraph:
        shape = self.shape
        schedule = build_schedule(
            shape.schedule, shape.pp, shape.vpp, shape.micro_batches, shape.options
        )
        if shape.head_gather:
            self._gather_at_start()
        last = [_last_gradients(actions, shape.sync) for actions in schedule]
        run_in_turn(schedule, lambda stage, at: self._run(schedule[stage], at, last[stage]))
        self._close_step()
        return self.tasks.graph()

    def _gather_at_start(self) -> None:
        """Gather updated parameters segment by segment; the first forward pass waits for each."""
        for place, segments in enumerate(self.shape.segments):
            stage = self.pipeline.stage(place)
            self.head_gathers[place] = [
                self.tasks.add(Work(WorkKind.GATHER, stage, place, segment), StreamKind.DATA)
                for segment in range(segments)
            ]

    def _run(self, actions: StageActions, start: int, last: set[int]) -> int:
        """Add passes of a stage, from `start` on, up to one that waits for what is not added.

        Return its position. `last` are the positions of the last passes over each chunk that yield
        its gradients. This is the innermost loop of a plan: a pass that is one task, as another of
        its kind and chunk was, is added here.
        """
        recipes = self.recipes[actions[start].stage] if start < len(actions) else {}
        fields, ends, arrival = self.tasks.fields, self.tasks.last, self.arrival
        for at in range(start, len(actions)):
            action = actions[at]
            _, kind, micro_batch, chunk = action
            _, own, needed, lane, send_lane, work, send = recipes[kind][chunk]
            after = arrival[needed + micro_batch] if needed >= 0 else NO_TASK
            if after == _NOT_ADDED:
                return at
            if work == _NO_WORK or at in last:
                done = self._pass(action, after, is_last=at in last)
            else:
                done = ends[lane] = len(fields) // FIELDS
                fields += (work, lane, after, NO_TASK, micro_batch)
                if send != _NO_WORK:
                    fields += (send, send_lane, done, NO_TASK, micro_batch)
                    done = ends[send_lane] = done + 1
            arrival[own + micro_batch] = done
        return len(actions)

    def _pass(self, action: Action, arrival: int, *, is_last: bool) -> int:
        """Add any pass; return the task after which what it yields is where it is needed."""
        stage, kind, micro_batch, chunk = action
        shape, recipe = self.shape, self.recipes[stage][kind][chunk]
        place, work, send = recipe.place, _NO_WORK, _NO_WORK
        if shape.on_request:
            arrival = self._request(action, place, arrival)
        reduces = kind in _YIELDS_GRADIENTS and (shape.sync is Sync.EVERY_PASS or is_last)
        gathers = self.head_gathers.pop(place, []) if kind is ActionKind.FORWARD else []
        anew = self._gathers_anew(kind, place)
        if anew or reduces or gathers:
            done = self._segmented(action, arrival, gathers, anew=anew, reduces=reduces)
        else:
            work = self._number(_WORK_KINDS[kind], place)
            done = self.tasks.append(work, recipe.lane, arrival, NO_TASK, micro_batch)
        if not shape.on_request and self.sends[kind][place]:
            send = self._number(_TRANSFERS[False][kind is ActionKind.FORWARD], place)
            done = self.tasks.append(send, recipe.send_lane, done, NO_TASK, micro_batch)
        if not shape.on_request and not (shape.gathers and shape.reduces_once):
            self.recipes[stage][kind][chunk] = recipe._replace(work=work, send=send)
        return done

    def _number(self, kind: WorkKind, place: int) -> int:
        """Return the number of a work over a whole chunk."""
        return self.tasks.number(Work(kind, self.pipeline.stage(place), place))

    def _numbers(self, kind: WorkKind, place: int) -> list[int]:
        """Return the numbers of a work over each segment of a chunk."""
        found = self.segment_works.get((kind, place))
        if found is None:
            stage, segments = self.pipeline.stage(place), range(self.shape.segments[place])
            works = [Work(kind, stage, place, segment) for segment in segments]
            found = self.segment_works[kind, place] = list(map(self.tasks.number, works))
        return found

    def _gathers_anew(self, kind: ActionKind, place: int) -> bool:
        """Return whether a pass gathers, and remember whether what it used stays there."""
        if not self.shape.gathers or kind is ActionKind.BACKWARD_WEIGHT:
            return False
        missing = place not in self.kept
        if kind is ActionKind.FORWARD:
            self.kept.discard(place)
        elif self.shape.reduces_once:
            self.kept.add(place)
        return missing

    def _segmented(
        self, action: Action, arrival: int, gathers: list[int], *, anew: bool, reduces: bool
    ) -> int:
        """Add a pass segment by segment, each after its own of `gathers` or a gather of its own.

        The gather of one is issued before the reduction of the one before, as FSDP's backward
        prefetch does.
        """
        stage, kind, micro_batch, chunk = action
        append, gathered = self.tasks.append, self.gathered[stage]
        place = self.recipes[stage][kind][chunk].place
        lane, data_lane = STREAMS * stage + StreamKind.COMPUTE, STREAMS * stage + self.data_stream
        works = self._numbers(_WORK_KINDS[kind], place)
        gather_works = self._numbers(WorkKind.GATHER, place) if anew else []
        reduce_works = self._numbers(WorkKind.REDUCE, place) if reduces else []
        order = range(len(works))
        pending = done = NO_TASK
        for segment in order if kind is ActionKind.FORWARD else reversed(order):
            gather = gathers[segment] if gathers else NO_TASK
            if anew:
                gather = append(gather_works[segment], data_lane, self._freed(gathered), NO_TASK)
            if pending != NO_TASK:
                append(reduce_works[segment + 1], data_lane, pending, NO_TASK)
            waits = (gather, NO_TASK) if arrival == NO_TASK else (arrival, gather)
            done = append(works[segment], lane, *waits, micro_batch)
            if gather != NO_TASK:
                gathered.append(done)
            arrival, pending = NO_TASK, done if reduces else NO_TASK
        if pending != NO_TASK:
            reduced = append(reduce_works[0], data_lane, pending, NO_TASK)
            return reduced if self.shape.send_after_reduce else done
        return done

    def _freed(self, gathered: list[int]) -> int:
        """Return the task that must have used its segment before one more is gathered."""
        limit = len(gathered) - 1 - self.shape.prefetch
        return gathered[limit] if limit >= 0 else NO_TASK

    def _request(self, action: Action, place: int, produced: int) -> int:
        """Add the transfer that a pass asks for; return the task after which its data are there.

        It runs on the compute stream of the receiver. In 1F1B sends and receives between two
        stages are issued together, so that one behind a pass in the other direction is an exchange.
        """
        stage, kind, micro_batch, _ = action
        forward = kind is ActionKind.FORWARD
        before, self.last_pass[stage] = self.last_pass[stage], kind
        source = place - 1 if forward else place + 1
        if kind is ActionKind.BACKWARD_WEIGHT or not 0 <= source < self.pipeline.places:
            return produced
        if not self.sends[kind][source]:
            return produced
        turns = before is not None and (before is ActionKind.FORWARD) is not forward
        exchange = turns and self.shape.schedule is ScheduleName.ONE_F_ONE_B
        work = self.tasks.number(Work(_TRANSFERS[exchange][forward], stage, source))
        lane = STREAMS * stage + StreamKind.COMPUTE
        return self.tasks.append(work, lane, produced, NO_TASK, micro_batch)

    def _close_step(self) -> None:
        """Reduce what is left, join all stages for the gradient norm, update, spread parameters."""
        shape, add, last = self.shape, self.tasks.add, self.tasks.last
        if shape.sync is Sync.AFTER:
            for place in reversed(range(self.pipeline.places)):
                self._reduce_chunk(place)
        computed, moved = last[StreamKind.COMPUTE :: STREAMS], last[StreamKind.DATA :: STREAMS]
        if shape.tied:
            ends = computed[0], computed[-1], moved[0], moved[-1]
            for stage in (0, shape.pp - 1):
                add(Work(WorkKind.TIED_REDUCE, stage), StreamKind.DATA, *ends)
            moved = last[StreamKind.DATA :: STREAMS]
        waits = [task for stage in zip(computed, moved, strict=True) for task in stage]
        norm = add(Work(WorkKind.JOIN, 0), StreamKind.DATA, *waits)
        for stage in range(shape.pp):
            update = add(Work(WorkKind.OPTIMIZER, stage), StreamKind.COMPUTE, norm)
            if shape.tail is not WorkKind.JOIN:
                for place in self.pipeline.places_of(stage):
                    add(Work(shape.tail, stage, place), StreamKind.DATA, update)

    def _reduce_chunk(self, place: int) -> None:
        """Reduce a chunk whole; where another stage holds its other copy, wait for that one too."""
        stage, computed = self.pipeline.stage(place), self.tasks.last[StreamKind.COMPUTE :: STREAMS]
        after = [computed[stage]]
        if self.pipeline.placement is Placement.BIDIRECTIONAL:
            after.append(computed[self.shape.pp - 1 - stage])
        self.tasks.add(Work(WorkKind.REDUCE, stage, place, WHOLE_CHUNK), StreamKind.DATA, *after)


def _last_gradients(actions: StageActions, sync: Sync) -> set[int]:
    """Return the positions of the last pass over each chunk, where it reduces the gradients."""
    if sync is not Sync.LAST_PASS:
        return set()
    found: dict[int, int] = {}
    for position, (_, kind, _, chunk) in enumerate(actions):
        if kind in _YIELDS_GRADIENTS:
            found[chunk] = position
    return set(found.values())
