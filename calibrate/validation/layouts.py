"""From the layout columns of a row to a parallel layout."""

from __future__ import annotations

import re

from pydantic import ValidationError

from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.practices import practice_of, stage_layers
from calibrate.validation.savers import savers_of
from calibrate.validation.software import is_fsdp
from simulator.parallel.layout import ZERO_PARAMETERS, ContextExchange, ParallelLayout, ScheduleName
from simulator.workload.stack import Stack
from simulator.workload.stack_choices import AttentionKernel

_TWO_CHUNKS = 2
"""Chunks a rank where a schedule has several and a row does not say: V shapes and DualPipe have
two, and so has torchtitan's interleaved schedule by default."""
_SCHEDULES: tuple[tuple[str, ScheduleName | None], ...] = (
    (r"zb-?(2p|h2)|v-(half|min)|chimera", None),
    (r"zb-?v|zbv", ScheduleName.ZERO_BUBBLE_V),
    (r"zb-?(1p|h1)|zero.?bubble", ScheduleName.ZERO_BUBBLE_H1),
    (r"dual-?pipe-?v", ScheduleName.DUALPIPE_V),
    (r"dual-?pipe", ScheduleName.DUALPIPE),
    (r"looped.?bfs", ScheduleName.LOOPED_BFS),
    (r"inter?leaved?|1f1b-i", ScheduleName.INTERLEAVED),
    (r"^1f1b|pipedream", ScheduleName.ONE_F_ONE_B),
    (r"gpipe|afab|all.?forward", ScheduleName.GPIPE),
)
"""Words of `pp_schedule`; the first that is found counts, None is not modelled."""
_DISTRIBUTED_OPTIMIZER = re.compile(r"distributed|zero-?1", re.I)
_SHARD_GROUP = re.compile(r"(?:FSDP group|zero1 group size) (\d+)", re.I)


def layout_of(row: Row, stack: Stack, gpus: int) -> ParallelLayout:
    """Return the layout of a row on `gpus` accelerators.

    Raises:
        SkippedRowError: a column is impossible, or asks for what is not modelled.
    """
    _check_any_axis(row, stack, gpus)
    tp, pp, cp = (row.integer(name, 1) for name in ("tp", "pp", "cp"))
    vpp = _chunks(row, pp)
    dp = _data_parallel(row, gpus, tp * pp * cp)
    saved = savers_of(row)
    exchange = practice_of(row).context if cp > 1 else ContextExchange.RING
    if cp > 1:
        row.assume(f"context parallelism by {exchange}")
    try:
        return ParallelLayout(
            tp=tp,
            pp=pp,
            cp=cp,
            cp_comm_type=exchange,
            dp=dp,
            vpp=vpp,
            ep=row.integer("ep") if row.known("ep") else 1,
            etp=_expert_tensor(row, tp),
            micro_batch_size=_micro_batch(row, dp),
            schedule=_schedule(row, vpp) if pp > 1 else None,
            sequence_parallel=_sequence_parallel(row, tp, stack),
            zero_stage=_zero_stage(row, stack),
            shard_size=_shard_size(row, dp * cp),
            recompute=saved.recompute,
            recompute_modules=saved.modules,
            recompute_num_layers=saved.layers,
            offload_layers=saved.offload_layers,
            optimizer_offload=saved.optimizer_offload,
        )
    except ValidationError as error:
        item = error.errors()[0]
        raise SkippedRowError(f"{'.'.join(map(str, item['loc']))}: {item['msg']}") from error


def with_stages(row: Row, layout: ParallelLayout, layers: int) -> ParallelLayout:
    """Return `layout` with the layers of each stage where a model's recipe sets them."""
    split = stage_layers(row, layers, layout.pipeline.way)
    if split is None:
        return layout
    row.assume(f"layers of the stages {', '.join(map(str, split))}")
    return layout.model_copy(update={"layers_per_stage": split})


def _chunks(row: Row, pp: int) -> int:
    if pp == 1:
        return 1
    several = re.search(r"interleaved|zb-?v|dual-?pipe", row.text("pp_schedule"), re.I)
    return row.integer("vpp", _TWO_CHUNKS if several else 1)


def _expert_tensor(row: Row, tp: int) -> int | None:
    """Return the tensor-parallel size of experts; None is tp, and is all that dense models have."""
    if not row.known("experts"):
        return None
    if row.known("etp"):
        return row.integer("etp")
    usual = practice_of(row).expert_tensor
    if tp > 1:
        row.assume(f"etp = {usual or tp}")
    return usual


def _shard_size(row: Row, data_ranks: int) -> int | None:
    """Return the ranks that share a sharded copy where they are fewer than all data ranks."""
    group = _SHARD_GROUP.search(row.text("notes"))
    return int(group[1]) if group and int(group[1]) < data_ranks else None


def _check_any_axis(row: Row, stack: Stack, gpus: int) -> None:
    """Refuse to guess a layout of which nothing is said; FSDP alone needs no other axis."""
    known = any(row.known(axis) for axis in ("tp", "pp", "dp"))
    if gpus > 1 and not known and not is_fsdp(stack):
        raise SkippedRowError("tp, pp, dp: none of them is given")


def _data_parallel(row: Row, gpus: int, others: int) -> int:
    if gpus % others:
        raise SkippedRowError(f"gpus: {gpus} do not divide by tp x pp x cp = {others}")
    dp = gpus // others
    if row.known("dp") and row.integer("dp") != dp:
        raise SkippedRowError(
            f"dp: {row.integer('dp')} is not gpus / (tp x pp x cp) = {gpus} / {others}"
        )
    return dp


def _micro_batch(row: Row, dp: int) -> int:
    if row.known("micro_batch"):
        return row.integer("micro_batch")
    if row.known("grad_accum") and row.known("global_batch"):
        total, steps = row.integer("global_batch"), row.integer("grad_accum")
        if total % (dp * steps) == 0:
            return total // (dp * steps)
    return row.integer("micro_batch", 1)


def _schedule(row: Row, vpp: int) -> ScheduleName | None:
    text = row.text("pp_schedule").lower()
    if not text:
        row.assume("interleaved schedule" if vpp > 1 else "1f1b schedule")
        return None
    for words, schedule in _SCHEDULES:
        if re.search(words, text):
            if schedule is None:
                break
            if schedule is ScheduleName.ONE_F_ONE_B and vpp > 1:
                return ScheduleName.INTERLEAVED
            return schedule
    raise SkippedRowError(f"pp_schedule: {row.text('pp_schedule')[:60]!r} is not modelled yet")


def _sequence_parallel(row: Row, tp: int, stack: Stack) -> bool:
    """Return the cell, or a default where it is blank.

    Stacks with flash attention are taken to split along the sequence, as all published rows of
    such stacks do that say it; older ones do not.
    """
    recent = stack.kernels.attention is AttentionKernel.FLASH
    return tp > 1 and row.flag("sequence_parallel", default=recent)


def _zero_stage(row: Row, stack: Stack) -> int:
    stage = row.leading_digit("zero_stage")
    if stage is not None:
        return stage
    if is_fsdp(stack):
        stage = ZERO_PARAMETERS
    else:
        stage = int(bool(_DISTRIBUTED_OPTIMIZER.search(row.text("optimizer"))))
    row.assume(f"zero_stage = {stage}")
    return stage
