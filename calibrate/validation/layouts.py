"""From the job and layout columns of a row to a training job and a parallel layout."""

from __future__ import annotations

import re

from pydantic import ValidationError

from calibrate.validation.cells import Row, SkippedRowError
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ParallelLayout, Recompute, ScheduleName
from simulator.workload.job import Optimizer, TrainingJob
from simulator.workload.stack import AttentionKernel, Stack

_FSDP = 3
_NARROW = re.compile(r"fp8|float8|fp4|int8", re.I)
_PRECISIONS = {
    "bf16": Dtype.BF16,
    "bfloat16": Dtype.BF16,
    "fp16": Dtype.FP16,
    "float16": Dtype.FP16,
    "tf32": Dtype.TF32,
    "fp32": Dtype.FP32,
}
_TRAINED_WHOLE = re.compile(r"pre-?train|sft|fine-?tun|full", re.I)
_FROZEN = re.compile(r"lora|adapter|peft|frozen", re.I)
_FULL = re.compile(r"full(\s*\((uniform, )?1 layer\)|\s*\(all layers\)|\s*\(every layer\))?", re.I)
_SELECTIVE = re.compile(r"selective(\s*[:(]?\s*(core[ _]attn|attention)\)?)?", re.I)
_NONE = re.compile(r"none|false|off|no", re.I)
_SCHEDULES = (
    (r"zb|zero.?bubble|v-(half|min)|dual|chimera", None),
    (r"inter?leaved?|1f1b-i", ScheduleName.INTERLEAVED),
    (r"^1f1b|pipedream", ScheduleName.ONE_F_ONE_B),
    (r"gpipe|afab|all.?forward", ScheduleName.GPIPE),
)
"""Words of `pp_schedule`; the first that is found counts, None is not modelled."""
_DISTRIBUTED_OPTIMIZER = re.compile(r"distributed|zero-?1", re.I)


def job_of(row: Row, stack: Stack, layout: ParallelLayout) -> TrainingJob:
    """Return what is trained, with the vocabulary padded as the row or the stack says."""
    precision = _precision(row)
    _check_task(row)
    try:
        return TrainingJob(
            global_batch_size=_global_batch(row, layout),
            seq_length=row.integer("seq_len"),
            precision=precision,
            optimizer=_optimizer(row),
            stack=stack.name,
            make_vocab_size_divisible_by=_vocabulary_multiple(row, stack),
        )
    except ValidationError as error:
        raise SkippedRowError(f"job: {error.errors()[0]['msg']}") from error


def layout_of(row: Row, stack: Stack, gpus: int) -> ParallelLayout:
    """Return the layout of a row on `gpus` accelerators.

    Raises:
        SkippedRowError: a column is impossible, or asks for what is not modelled.
    """
    _check_any_axis(row, stack, gpus)
    tp, pp, cp = (row.integer(name, 1) for name in ("tp", "pp", "cp"))
    vpp = row.integer("vpp", 1) if pp > 1 else 1
    dp = _data_parallel(row, gpus, tp * pp * cp)
    schedule = _schedule(row, vpp) if pp > 1 else None
    try:
        return ParallelLayout(
            tp=tp,
            pp=pp,
            cp=cp,
            dp=dp,
            vpp=vpp,
            micro_batch_size=_micro_batch(row, dp),
            schedule=schedule,
            sequence_parallel=_sequence_parallel(row, tp, stack),
            zero_stage=_zero_stage(row, stack),
            recompute=_recompute(row),
        )
    except ValidationError as error:
        item = error.errors()[0]
        raise SkippedRowError(f"{'.'.join(map(str, item['loc']))}: {item['msg']}") from error


def _precision(row: Row) -> Dtype:
    text = row.text("precision").lower()
    if _NARROW.search(text):
        raise SkippedRowError(f"precision: {text[:60]!r}: fp8 training is not modelled yet")
    if not text:
        row.assume("precision = bf16")
        return Dtype.BF16
    word = re.split(r"[^a-z0-9]", text)[0]
    if word not in _PRECISIONS:
        raise row.bad("precision", "one of " + ", ".join(_PRECISIONS))
    return _PRECISIONS[word]


def _check_task(row: Row) -> None:
    task = row.text("task")
    if _FROZEN.search(task):
        raise SkippedRowError(f"task: {task[:60]!r} trains only a part of the weights")
    if task and not _TRAINED_WHOLE.search(task):
        raise row.bad("task", "pretraining or fine-tuning of all weights")


def _optimizer(row: Row) -> Optimizer:
    text = row.text("optimizer").lower()
    if "offload" in text or "offload" in row.text("recompute").lower():
        raise SkippedRowError("optimizer: offload to the host is not modelled")
    if not text:
        row.assume("optimizer = Adam")
        return Optimizer.ADAM
    if "adam" in text:
        return Optimizer.ADAM
    if "sgd" in text:
        return Optimizer.SGD_MOMENTUM if "momentum" in text else Optimizer.SGD
    raise row.bad("optimizer", "Adam or SGD")


def _global_batch(row: Row, layout: ParallelLayout) -> int:
    each = layout.dp * layout.micro_batch_size
    if not row.known("global_batch"):
        return row.integer("global_batch", each * row.integer("grad_accum", 1))
    total = row.integer("global_batch")
    if row.known("micro_batch") and row.known("grad_accum"):
        steps = row.integer("grad_accum")
        if total != each * steps:
            raise SkippedRowError(
                f"global_batch: {total} is not dp {layout.dp} x micro_batch "
                f"{layout.micro_batch_size} x grad_accum {steps}"
            )
    return total


def _vocabulary_multiple(row: Row, stack: Stack) -> int:
    if row.known("vocab_padded") or _is_fsdp(stack):
        return 1
    default = TrainingJob.model_fields["make_vocab_size_divisible_by"].default
    row.assume(f"vocabulary padded to a multiple of {default} x tp")
    return int(default)


def _check_any_axis(row: Row, stack: Stack, gpus: int) -> None:
    """Refuse to guess a layout of which nothing is said; FSDP alone needs no other axis."""
    known = any(row.known(axis) for axis in ("tp", "pp", "dp"))
    if gpus > 1 and not known and not _is_fsdp(stack):
        raise SkippedRowError("tp, pp, dp: none of them is given")


def _is_fsdp(stack: Stack) -> bool:
    """Return whether a stack shards parameters and has no half-way stage."""
    return _FSDP in stack.zero_stages and 1 not in stack.zero_stages


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
    if _is_fsdp(stack):
        stage = _FSDP
    else:
        stage = int(bool(_DISTRIBUTED_OPTIMIZER.search(row.text("optimizer"))))
    row.assume(f"zero_stage = {stage}")
    return stage


def _recompute(row: Row) -> Recompute:
    text = row.text("recompute")
    if not text:
        row.assume("recompute = none")
        return Recompute.NONE
    for words, kind in (
        (_NONE, Recompute.NONE),
        (_SELECTIVE, Recompute.SELECTIVE),
        (_FULL, Recompute.FULL),
    ):
        if words.fullmatch(text):
            return kind
    raise row.bad("recompute", "none, selective or full, and nothing else is modelled yet")
