"""From a step program to the shape of its task graph."""

from __future__ import annotations

from simulator.parallel.layout import ZERO_GRADIENTS, DataParallel
from simulator.parallel.placement import Placement
from simulator.parallel.program import StepProgram
from simulator.schedule.registry import schedule_options
from simulator.schedule.tasks import GraphShape, Sync, WorkKind


def graph_shape(program: StepProgram, *, averages: bool = False) -> GraphShape:
    """Return the shape of a program's step; `averages`: this step of local SGD synchronises."""
    layout, overlap = program.layout, program.stack.overlap
    head_gather = _gathers_after_update(program) and overlap.parameter_gather
    return GraphShape(
        schedule=layout.effective_schedule,
        pp=layout.pp,
        vpp=layout.vpp,
        micro_batches=program.micro_batches,
        segments=tuple(len(chunk.segments) for chunk in program.chunks),
        sync=_sync(program),
        gathers=program.shards_parameters,
        reduces_once=layout.pp > 1 and overlap.reduces_once,
        prefetch=overlap.prefetch,
        blocking_send=not overlap.pipeline_send and overlap.pipeline_receive,
        on_request=not overlap.pipeline_receive,
        send_after_reduce=overlap.send_after_reduce,
        blocking_data=program.shards_parameters and not overlap.sharded,
        tied=program.ties_stages,
        tail=_tail(program, averages) if not head_gather else WorkKind.JOIN,
        head_gather=head_gather,
        options=schedule_options(layout),
    )


def _gathers_after_update(program: StepProgram) -> bool:
    return program.layout.zero_stage in (1, 2) and program.shards


def _sync(program: StepProgram) -> Sync:
    layout = program.layout
    if not program.has_copies or layout.data_parallel is DataParallel.LOCAL_SGD:
        return Sync.NEVER
    # The copies of DualPipe reduce after the last pass of both.
    if layout.pipeline.placement is Placement.BIDIRECTIONAL:
        return Sync.AFTER
    if layout.data_parallel is DataParallel.PARAMETER_SERVER:
        return Sync.AFTER
    if layout.zero_stage >= ZERO_GRADIENTS:
        once = layout.pp > 1 and program.stack.overlap.reduces_once
        return Sync.AFTER if once else Sync.EVERY_PASS
    return Sync.LAST_PASS if program.stack.overlap.gradient_reduce else Sync.AFTER


def _tail(program: StepProgram, averages: bool) -> WorkKind:
    """Return what spreads the new parameters after the update."""
    if not program.has_copies:
        return WorkKind.JOIN
    match program.layout.data_parallel:
        case DataParallel.PARAMETER_SERVER:
            return WorkKind.BROADCAST
        case DataParallel.LOCAL_SGD:
            return WorkKind.AVERAGE if averages else WorkKind.JOIN
        case DataParallel.ALL_REDUCE:
            return WorkKind.GATHER_CHUNK if _gathers_after_update(program) else WorkKind.JOIN
