"""The task graph of a step: passes, transfers and gradient traffic with what each waits for.

Tasks stand in an order in which every task follows what it depends on. A pipeline rank has three
streams (compute, data-parallel, pipeline send); a stream runs its tasks one at a time in this
order. A task has at most two explicit dependencies; joins are tasks of no duration.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from simulator.parallel.layout import ScheduleName
from simulator.parallel.placement import PipelineShape
from simulator.parallel.segments import WHOLE_CHUNK
from simulator.schedule.registry import PLAIN, ScheduleOptions, pipeline_shape

NO_TASK = -1


class StreamKind(IntEnum):
    """The streams of one pipeline rank."""

    COMPUTE = 0
    DATA = 1
    SEND = 2


STREAMS = len(StreamKind)


class WorkKind(IntEnum):
    """What a task does."""

    FORWARD = 0
    BACKWARD = 1
    SEND_FORWARD = 2
    SEND_BACKWARD = 3
    GATHER = 4
    """Parameters of a segment: for each pass in ZeRO-3, for the first one in ZeRO-1 and 2."""
    REDUCE = 5
    """Gradients of a segment (or of a whole chunk)."""
    TIED_REDUCE = 6
    """Gradient of the embedding between first and last stage."""
    JOIN = 7
    OPTIMIZER = 8
    GATHER_CHUNK = 9
    """ZeRO-1 and 2: updated parameters of a chunk, after the update."""
    BROADCAST = 10
    """Parameter server: updated parameters of a chunk."""
    AVERAGE = 11
    """Local SGD: parameters of a chunk."""
    BACKWARD_INPUT = 12
    """The part of a backward pass that the stage before waits for."""
    BACKWARD_WEIGHT = 13
    """Weight gradients, put off."""
    EXCHANGE_FORWARD = 14
    """`SEND_FORWARD` while the same two ranks send the other way."""
    EXCHANGE_BACKWARD = 15


class Work(NamedTuple):
    """The key of a duration: equal work takes equally long."""

    kind: WorkKind
    stage: int
    chunk: int = 0
    """Virtual stage index of the chunk."""
    segment: int = WHOLE_CHUNK


class Sync(IntEnum):
    """When gradients are reduced."""

    NEVER = 0
    AFTER = 1
    """After the last backward pass, in one piece a chunk."""
    LAST_PASS = 2
    """Segment by segment while the last backward pass runs."""
    EVERY_PASS = 3
    """Segment by segment in every backward pass (ZeRO-2, ZeRO-3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphShape:
    """All that the structure of a step depends on; equal shapes share one graph."""

    schedule: ScheduleName
    pp: int
    vpp: int
    micro_batches: int
    segments: tuple[int, ...]
    """Segments of each chunk, in model order."""
    sync: Sync
    gathers: bool
    """Whether each pass gathers its parameters first (ZeRO-3)."""
    reduces_once: bool = False
    """Whether a backward pass keeps them until a forward pass has used them."""
    prefetch: int
    blocking_send: bool
    on_request: bool = False
    """Whether a transfer runs when its receiver comes to it, which it holds up."""
    send_after_reduce: bool = False
    """Whether a pass that reduces gradients is done for the next stage only when they are."""
    blocking_data: bool = False
    """Whether ZeRO-3's gathers and reductions hold up compute."""
    tied: bool
    tail: WorkKind
    """What follows the optimizer on the data stream of each chunk; JOIN for nothing."""
    head_gather: bool
    """Whether ZeRO-1 parameters are gathered at the start of the step, under the forward pass."""
    options: ScheduleOptions = PLAIN

    @property
    def pipeline(self) -> PipelineShape:
        """Which stage runs which place."""
        return pipeline_shape(self.schedule, self.pp, self.vpp, self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGraph:
    """Tasks as parallel lists, in dependency order; `works[work[i]]` is what task i does."""

    works: tuple[Work, ...]
    work: tuple[int, ...]
    stream: tuple[int, ...]
    """`STREAMS` x stage + `StreamKind`."""
    first: tuple[int, ...]
    second: tuple[int, ...]
    """The two explicit dependencies of each task; `NO_TASK` for none."""
    micro_batch: tuple[int, ...]
    pp: int

    def __len__(self) -> int:
        return len(self.work)
