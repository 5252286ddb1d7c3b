"""A lower bound of the step time of a layout on a mixed cluster."""

from __future__ import annotations

from simulator.api import Forecaster
from simulator.parallel.layout import ParallelLayout, Placement
from simulator.parallel.segments import Chunk
from simulator.schedule.profile import splits_backward
from simulator.schedule.registry import schedule_options


def mixed_bound(forecaster: Forecaster, layout: ParallelLayout) -> float:
    """Return seconds that a step of a legal layout takes at least on a mixed cluster.

    It is what one stage computes in the replica that stands on its slowest machine, and where a
    pipeline goes once through its stages, the passes of one micro-batch over the places before that
    stage, on the fastest machine that they could stand on.
    """
    mixed = forecaster.mixed
    assert mixed is not None, "asked of a mixed cluster"
    shape, stages = layout.pipeline, mixed.stage_kinds(layout)
    used = sorted({kind for held in stages for kind in held})
    seconds = {kind: _passes(forecaster, layout, kind) for kind in used}
    program = forecaster.program(layout)
    passes = program.micro_batches * shape.way / shape.places
    through = shape.placement is Placement.LOOP and not _splits(forecaster, layout)
    found = before = 0.0
    for stage, held in enumerate(stages):
        places = shape.places_of(stage)
        own = max(sum(seconds[kind][place] for place in places) for kind in held)
        found = max(found, before + own * passes)
        before += min(seconds[kind][places[0]] for kind in held) if through else 0.0
    return found


def _passes(forecaster: Forecaster, layout: ParallelLayout, kind: int) -> list[float]:
    """Return the seconds of both passes over each place if all stood on one machine."""
    assert forecaster.mixed is not None
    machine = forecaster.mixed.machines[kind]
    program = machine.programs.of(layout)
    splits = _splits(forecaster, layout)

    def both(chunk: Chunk) -> float:
        forward, backward = machine.costs.segment(program, chunk.whole)
        if not splits:
            return forward.seconds + backward.seconds
        halves = machine.costs.split_segment(program, chunk.whole)
        return forward.seconds + min(backward.seconds, sum(half.seconds for half in halves))

    distinct = {id(chunk): chunk for chunk in program.chunks}
    found = {key: both(chunk) for key, chunk in distinct.items()}
    return [found[id(chunk)] for chunk in program.chunks]


def _splits(forecaster: Forecaster, layout: ParallelLayout) -> bool:
    """Return whether a schedule puts weight gradients off."""
    count = layout.micro_batches(forecaster.job.global_batch_size)
    sizes = (layout.effective_schedule, layout.pp, layout.vpp, count)
    return splits_backward(*sizes, schedule_options(layout))
