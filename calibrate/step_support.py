"""Which training steps can be run for real, and which layers stand on which stage of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise

from calibrate.points import StepPoint
from simulator.errors import Problem, UnsupportedError
from simulator.hardware.accelerator import Dtype
from simulator.parallel.checks import check_layout
from simulator.parallel.layout import DataParallel, ParallelLayout, Recompute, ScheduleName
from simulator.parallel.partition import partition_layers
from simulator.workload.job import Optimizer
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack, load_stack

SCHEDULES = (
    ScheduleName.GPIPE,
    ScheduleName.ONE_F_ONE_B,
    ScheduleName.INTERLEAVED,
    ScheduleName.LOOPED_BFS,
)
"""Those of `torch.distributed.pipelining` that run whole backward passes."""
PRECISIONS = (Dtype.FP32, Dtype.BF16, Dtype.FP16)
_ZERO_STAGES = (0, 3)
"""DDP and FSDP2."""


def check_step(point: StepPoint, spec: ModelSpec, world_size: int) -> None:
    """Raise `UnsupportedError` with everything of a step that cannot be run here.

    Raises:
        InputError: the layout breaks a rule of the stack or the model.
    """
    problems = [*_world_problems(point.layout, world_size), *_layout_problems(point.layout)]
    problems += _job_problems(point)
    if problems:
        raise UnsupportedError(*problems)
    check_layout(spec, point.job, load_stack(point.job.stack), point.layout, "step")


def stage_bounds(point: StepPoint, spec: ModelSpec) -> tuple[tuple[int, int], ...]:
    """Return the first layer of each virtual stage and the one behind its last, in model order."""
    stack: Stack = load_stack(point.job.stack)
    counts = partition_layers(point.layout, spec.num_hidden_layers, stack.partition)
    return tuple(pairwise(accumulate(counts, initial=0)))


def _world_problems(layout: ParallelLayout, world_size: int) -> Iterator[Problem]:
    if layout.world_size != world_size:
        yield Problem(
            key="layout",
            found=f"tp x cp x dp x pp = {layout.world_size}",
            rule=f"must use all {world_size} ranks",
        )


def _layout_problems(layout: ParallelLayout) -> Iterator[Problem]:
    """Yield what of a layout plain PyTorch has no word for here."""
    wanted = {
        "layout.cp": (layout.cp, layout.cp == 1, "1"),
        "layout.ep": (layout.ep, layout.ep == 1, "1"),
        "layout.zero_stage": (layout.zero_stage, layout.zero_stage in _ZERO_STAGES, "0 or 3"),
        "layout.shard_size": (layout.shard_size, layout.shard_size is None, "none"),
        "layout.sequence_parallel": (
            layout.sequence_parallel,
            not layout.sequence_parallel,
            "false",
        ),
        "layout.recompute": (layout.recompute, layout.recompute is Recompute.NONE, "none"),
        "layout.offload_layers": (layout.offload_layers, not layout.offload_layers, "0"),
        "layout.optimizer_offload": (layout.optimizer_offload, not layout.optimizer_offload, "0"),
        "layout.data_parallel": (
            layout.data_parallel,
            layout.data_parallel is DataParallel.ALL_REDUCE,
            DataParallel.ALL_REDUCE.value,
        ),
    }
    for key, (found, fits, fix) in wanted.items():
        if not fits:
            yield Problem(
                key=key, found=str(found), rule="cannot be run for real", fix=f"use {fix}"
            )
    schedule = layout.effective_schedule
    if layout.pp > 1 and schedule not in SCHEDULES:
        fix = "one of: " + ", ".join(SCHEDULES)
        yield Problem(key="layout.schedule", found=schedule, rule="cannot be run for real", fix=fix)
    if layout.tp > 1 and layout.dp > 1 and not layout.zero_stage:
        rule = "tensor parallelism beside DDP cannot be run: DDP takes no DTensors"
        yield Problem(key="layout.zero_stage", found="0", rule=rule, fix="use zero_stage = 3")


def _job_problems(point: StepPoint) -> Iterator[Problem]:
    job = point.job
    if job.precision not in PRECISIONS:
        fix = "one of: " + ", ".join(PRECISIONS)
        yield Problem(
            key="job.precision", found=job.precision, rule="cannot be run for real", fix=fix
        )
    if job.optimizer is not Optimizer.ADAM:
        yield Problem(
            key="job.optimizer", found=job.optimizer, rule="cannot be run for real", fix="use adam"
        )
    for key in ("lora", "powersgd_rank", "document_length"):
        found = getattr(job, key)
        if found is not None:
            yield Problem(
                key=f"job.{key}",
                found=str(found),
                rule="cannot be run for real",
                fix="leave it out",
            )
    if job.freeze:
        found = ", ".join(job.freeze)
        yield Problem(
            key="job.freeze", found=found, rule="cannot be run for real", fix="leave it out"
        )
