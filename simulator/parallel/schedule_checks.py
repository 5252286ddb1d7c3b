"""Which pipeline schedules a stack, a layout and a number of micro-batches allow, with fixes."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.errors import Problem
from simulator.parallel.layout import (
    ZERO_STATES,
    DataParallel,
    ParallelLayout,
    Placement,
    ScheduleName,
)
from simulator.workload.job import TrainingJob
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack

SCHEDULE_FIELDS = (
    "pp",
    "dp",
    "micro_batch_size",
    "schedule",
    "vpp",
    "microbatch_group_size",
    "extra_warm_up",
    "schedule_file",
    "placement",
)
COPIES_FIELDS = (
    *("pp", "schedule", "placement", "vpp"),
    *("zero_stage", "shard_size", "data_parallel"),
)
_ONE_CHUNK = (ScheduleName.GPIPE, ScheduleName.ONE_F_ONE_B)
_TWO_CHUNKS = (ScheduleName.ZERO_BUBBLE_V, ScheduleName.DUALPIPE, ScheduleName.DUALPIPE_V)
_WARMS_UP = (ScheduleName.ONE_F_ONE_B, ScheduleName.INTERLEAVED)
_TWO = 2


def schedule_problems(
    model: ModelSpec,  # noqa: ARG001
    job: TrainingJob,
    stack: Stack,
    layout: ParallelLayout,
) -> Iterator[Problem]:
    """Yield what is wrong with the schedule of a layout and its number of micro-batches."""
    yield from _offered(stack, layout)
    yield from _chunks(layout)
    yield from _options(layout)
    count = layout.micro_batches(job.global_batch_size)
    match layout.effective_schedule:
        case ScheduleName.INTERLEAVED:
            yield from _interleaved(layout, count)
        case ScheduleName.ZERO_BUBBLE_H1 if layout.vpp > 1:
            yield from _rounds(layout, count)
        case ScheduleName.DUALPIPE | ScheduleName.DUALPIPE_V:
            yield from _dualpipe(layout, count)
        case _:
            pass


def copies_problems(
    model: ModelSpec,  # noqa: ARG001
    job: TrainingJob,  # noqa: ARG001
    stack: Stack,  # noqa: ARG001
    layout: ParallelLayout,
) -> Iterator[Problem]:
    """Yield what does not go together with the two copies of the parameters that DualPipe holds."""
    if layout.pipeline.placement is not Placement.BIDIRECTIONAL:
        return
    rule = "dualpipe keeps two copies of the parameters"
    if layout.zero_stage > ZERO_STATES:
        found = str(layout.zero_stage)
        more = f"{rule} and reduces their gradients after the last pass of both"
        yield _problem("zero_stage", found, more, "zero_stage = 0 or 1, or dualpipe-v")
    if layout.shard_size is not None:
        found = str(layout.shard_size)
        more = f"{rule}; sharding over a part of the ranks that hold them is not modelled"
        yield _problem("shard_size", found, more, "leave it out")
    if layout.data_parallel is not DataParallel.ALL_REDUCE:
        more = f"{rule}, which are kept equal by an all-reduce"
        yield _problem("data_parallel", layout.data_parallel, more, "all-reduce, or dualpipe-v")


def _offered(stack: Stack, layout: ParallelLayout) -> Iterator[Problem]:
    name = layout.effective_schedule
    plain = layout.schedule is None and layout.vpp == 1
    if name not in stack.schedules and not plain:
        rule = f"{stack.name} does not offer this schedule"
        yield _problem("schedule", name, rule, "one of: " + ", ".join(stack.schedules))


def _chunks(layout: ParallelLayout) -> Iterator[Problem]:
    name, pp, vpp = layout.effective_schedule, layout.pp, layout.vpp
    if name is ScheduleName.INTERLEAVED and (vpp == 1 or pp == 1):
        yield _problem(
            "vpp", f"pp {pp}, vpp {vpp}", "interleaving needs pp > 1 and vpp > 1", "vpp = 1"
        )
    if name in _ONE_CHUNK and vpp > 1:
        fix = "interleaved" if name is ScheduleName.ONE_F_ONE_B else "looped-bfs"
        yield _problem(
            "schedule", f"vpp {vpp}", f"{name} has one chunk a stage", f"{fix}, or vpp = 1"
        )
    if name in _TWO_CHUNKS and vpp != _TWO:
        rule = f"{name} has two chunks a stage, in the shape of a V"
        if name is ScheduleName.DUALPIPE:
            rule = f"{name} holds two parts of the model a stage, one for each direction"
        yield _problem("vpp", str(vpp), rule, "vpp = 2")


def _options(layout: ParallelLayout) -> Iterator[Problem]:
    name, reads = layout.effective_schedule, 'schedule = "csv"'
    if layout.microbatch_group_size is not None and name is not ScheduleName.INTERLEAVED:
        found = str(layout.microbatch_group_size)
        rule = "only the interleaved schedule runs micro-batches in groups of a given size"
        yield _problem("microbatch_group_size", found, rule, "leave it out")
    if layout.extra_warm_up and name not in _WARMS_UP:
        rule = f"{name} has no warm-up of its own choice: 1f1b and interleaved have"
        yield _problem("extra_warm_up", str(layout.extra_warm_up), rule, "0")
    elif layout.extra_warm_up and layout.pp == 1:
        rule = "one stage has no warm-up: it needs pp > 1"
        yield _problem("extra_warm_up", str(layout.extra_warm_up), rule, "0")
    if layout.schedule_file is not None and name is not ScheduleName.CSV:
        rule = f"{name} is not read from a file"
        yield _problem("schedule_file", layout.schedule_file, rule, f"leave it out, or {reads}")
    if layout.schedule_file is None and name is ScheduleName.CSV:
        rule = "a csv schedule is read from a file"
        yield _problem("schedule_file", "nothing", rule, 'schedule_file = "schedule.csv"')
    if layout.placement is not None and name is not ScheduleName.CSV:
        rule = f"{name} places its chunks itself"
        yield _problem("placement", layout.placement, rule, f"leave it out, or {reads}")
    if layout.placement is Placement.BIDIRECTIONAL and name is ScheduleName.CSV:
        rule = "a place of PyTorch's notation stands once in a file"
        yield _problem("placement", layout.placement, rule, "loop or v")


def _interleaved(layout: ParallelLayout, count: int) -> Iterator[Problem]:
    """Groups of pp to m micro-batches, the last one not below pp.

    Source: Megatron-Core 0.9 core/pipeline_parallel/schedules.py,
    forward_backward_pipelining_with_interleaving.
    """
    pp, group = layout.pp, layout.microbatch_group_size
    if group is None:
        if count % pp:
            rule = f"interleaving needs micro-batches in groups of pp = {pp}"
            fix = "vpp = 1, or another micro_batch_size or dp"
            larger = [size for size in range(pp + 1, count + 1) if _divides(count, size, pp)]
            fix += f", or microbatch_group_size = {larger[0]}" if larger else ""
            yield _problem("vpp", f"{count} micro-batches a replica", rule, fix)
        return
    if not pp <= group <= count:
        rule = f"must be at least pp = {pp} and at most the {count} micro-batches of a replica"
        fix = "leave it out" if count < pp else f"{pp} to {count}"
        yield _problem("microbatch_group_size", str(group), rule, fix)
    elif not _divides(count, group, pp):
        legal = [size for size in range(pp, count + 1) if _divides(count, size, pp)]
        nearest = min(legal, key=lambda size: abs(size - group))
        rule = (
            f"{count} micro-batches leave a last group of {count % group}, "
            f"which must be 0 or at least pp = {pp}"
        )
        yield _problem("microbatch_group_size", str(group), rule, str(nearest))


def _divides(count: int, group: int, pp: int) -> bool:
    return count % group == 0 or count % group >= pp


def _rounds(layout: ParallelLayout, count: int) -> Iterator[Problem]:
    """Source: PyTorch 2.9 torch/distributed/pipelining, ScheduleInterleavedZeroBubble."""
    rounds = max(1, count // layout.pp)
    if count % rounds:
        found = f"{count} micro-batches a replica"
        rule = f"zb-h1 with vpp > 1 runs them in {rounds} rounds of like size"
        fix = f"{count - count % rounds} micro-batches (micro_batch_size or dp), or vpp = 1"
        yield _problem("vpp", found, rule, fix)


def _dualpipe(layout: ParallelLayout, count: int) -> Iterator[Problem]:
    """Source: github.com/deepseek-ai/DualPipe, dualpipe/dualpipe.py and dualpipev.py, `step`."""
    name, pp = layout.effective_schedule, layout.pp
    found = f"{count} micro-batches a replica"
    if name is ScheduleName.DUALPIPE and pp % _TWO:
        yield _problem("pp", str(pp), "dualpipe needs an even pp", f"pp = {pp + 1}, or dualpipe-v")
    if name is ScheduleName.DUALPIPE and count % _TWO:
        rule = "dualpipe needs an even number: half of them run each way"
        yield _problem("micro_batch_size", found, rule, "another micro_batch_size or dp")
    if count < _TWO * pp:
        rule = f"{name} needs at least 2 x pp = {_TWO * pp} micro-batches"
        fix = "a smaller micro_batch_size, dp or pp, or zb-v"
        yield _problem("micro_batch_size", found, rule, fix)


def _problem(field: str, found: str, rule: str, fix: str) -> Problem:
    return Problem(key=f"layout.{field}", found=found, rule=rule, fix=fix)
