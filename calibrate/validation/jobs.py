"""From the job columns of a row to a training job: numbers, task, optimizer, routing."""

from __future__ import annotations

import re

from pydantic import ValidationError

from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.practices import (
    SQUAD_TOKENS,
    adapter_of,
    hides_expert_exchange,
    packs_answers,
    practice_of,
)
from calibrate.validation.software import is_fsdp
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ParallelLayout
from simulator.workload.job import (
    Dispatcher,
    Dtypes,
    Lora,
    Optimizer,
    Recipe,
    Routing,
    TrainingJob,
)
from simulator.workload.stack import Stack

_PRECISIONS = {
    "bf16": Dtype.BF16,
    "bfloat16": Dtype.BF16,
    "fp16": Dtype.FP16,
    "float16": Dtype.FP16,
    "tf32": Dtype.TF32,
    "fp32": Dtype.FP32,
}
_NARROW: tuple[tuple[str, Dtype, Recipe | None], ...] = (
    (r"int8", Dtype.INT8, None),
    (r"nvfp4", Dtype.FP4, Recipe.NVFP4),
    (r"mxfp4", Dtype.FP4, Recipe.MXFP4),
    (r"mxfp8|fp8-mx", Dtype.FP8, Recipe.MXFP8),
    (r"delayed", Dtype.FP8, Recipe.DELAYED),
    (r"current|tensor-?wise|fp8-cs", Dtype.FP8, Recipe.TENSORWISE),
    (r"row-?wise", Dtype.FP8, Recipe.ROWWISE),
    (r"block|fp8-sc", Dtype.FP8, Recipe.BLOCKWISE),
    (r"fp8|float8", Dtype.FP8, None),
)
"""Words of `precision`; the first that is found counts, None is the framework's own recipe."""
_EITHER = re.compile(r"mxfp8 on blackwell\s*/\s*blockwise on h100", re.I)
_BLACKWELL = re.compile(r"\bG?B[23]00\b|blackwell", re.I)
_TRAINED_WHOLE = re.compile(r"pre-?train|sft|fine-?tun|full", re.I)
_ADAPTER = re.compile(r"lora", re.I)
_FROZEN = re.compile(r"adapter|peft|frozen", re.I)
_OPTIMIZERS = (
    (r"8-?bit", Optimizer.ADAM_8BIT),
    (r"adafactor", Optimizer.ADAFACTOR),
    (r"muon", Optimizer.MUON),
    (r"adam", Optimizer.ADAM),
    (r"sgd.*momentum", Optimizer.SGD_MOMENTUM),
    (r"sgd", Optimizer.SGD),
)
_FLEX = re.compile(r"deep-?ep|hybrid-?ep", re.I)
_GATHERED = re.compile(r"allgather dispatcher|dispatcher (ag|allgather)", re.I)
_DROPS = re.compile(r"token[ -]?drop|capacity factor", re.I)
_KEEPS = re.compile(r"dropless", re.I)
_CAPACITY = re.compile(r"capacity factor (\d+(?:\.\d+)?)", re.I)
_BALANCED = re.compile(r"force[d-]?[ -]*(load[ -]*)?balanc", re.I)
_PACKED_ANSWERS = re.compile(r"packed sequences \(squad\)", re.I)


def job_of(row: Row, stack: Stack, layout: ParallelLayout) -> TrainingJob:
    """Return what is trained, with the vocabulary padded as the row or the stack says."""
    precision, recipe = _precision(row)
    lora = _task(row)
    try:
        return TrainingJob(
            global_batch_size=_global_batch(row, layout),
            seq_length=row.integer("seq_len"),
            document_length=_documents(row),
            precision=precision,
            recipe=recipe,
            fp8_parameters=precision is Dtype.FP8 and _keeps_narrow(row),
            dtypes=Dtypes(state=_state(row)),
            optimizer=_optimizer(row),
            lora=lora,
            moe=_routing(row),
            stack=stack.name,
            make_vocab_size_divisible_by=_vocabulary_multiple(row, stack),
        )
    except ValidationError as error:
        raise SkippedRowError(f"job: {error.errors()[0]['msg']}") from error


def _precision(row: Row) -> tuple[Dtype, Recipe | None]:
    """Return the format of the matrix products, and how a narrow one is scaled."""
    text, practice = row.text("precision").lower(), practice_of(row)
    if not text:
        row.assume(f"precision = {practice.precision}")
        return practice.precision, practice.narrow if practice.precision is Dtype.FP8 else None
    if _EITHER.search(text):
        new = _BLACKWELL.search(row.text("hardware"))
        return Dtype.FP8, Recipe.MXFP8 if new else Recipe.BLOCKWISE
    for words, dtype, recipe in _NARROW:
        if re.search(words, text):
            return dtype, recipe or _usual_recipe(row, dtype)
    word = re.split(r"[^a-z0-9]", text)[0]
    if word not in _PRECISIONS:
        raise row.bad("precision", "one of fp8, nvfp4, mxfp4, " + ", ".join(_PRECISIONS))
    return _PRECISIONS[word], None


def _usual_recipe(row: Row, dtype: Dtype) -> Recipe:
    if dtype is not Dtype.FP8:
        raise SkippedRowError(f"precision: {row.text('precision')[:60]!r} is not modelled")
    recipe = practice_of(row).narrow
    row.assume(f"fp8 scaling = {recipe}")
    return recipe


def _keeps_narrow(row: Row) -> bool:
    """Return whether weights are kept and gathered in 8 bits."""
    said = f"{row.text('precision')} {row.text('overlap')}".lower()
    if re.search(r"fp8[_ ]params|fp8 all-gather", said):
        return True
    if practice_of(row).narrow_parameters:
        row.assume("weights kept and gathered in 8 bits")
        return True
    return False


def _task(row: Row) -> Lora | None:
    """Return the adapters; None where all weights are trained."""
    task = row.text("task")
    if _ADAPTER.search(task):
        return adapter_of(row)
    if _FROZEN.search(task):
        raise SkippedRowError(f"task: {task[:60]!r} trains only a part of the weights")
    if task and not _TRAINED_WHOLE.search(task):
        raise row.bad("task", "pretraining, fine-tuning of all weights or LoRA")
    return None


def _documents(row: Row) -> int | None:
    """Return the mean length of packed documents that do not see each other."""
    if not _PACKED_ANSWERS.search(row.text("notes")) and not packs_answers(row):
        return None
    row.assume(f"packed documents of {SQUAD_TOKENS} tokens")
    return SQUAD_TOKENS


def _optimizer(row: Row) -> Optimizer:
    text = row.text("optimizer").lower()
    if not text:
        row.assume("optimizer = Adam")
        return Optimizer.ADAM
    for words, optimizer in _OPTIMIZERS:
        if re.search(words, text):
            return optimizer
    raise row.bad("optimizer", "Adam, Adafactor, Muon or SGD")


def _state(row: Row) -> Dtype | None:
    return Dtype.BF16 if re.search(r"bf16 (moment|state)", row.text("optimizer"), re.I) else None


def _routing(row: Row) -> Routing:
    """Return how tokens reach their experts; loads are balanced where nothing is known of them."""
    if not row.known("experts"):
        return Routing()
    said = f"{row.text('model')} {row.text('notes')} {row.text('task')}"
    drops = _DROPS.search(said) and not _KEEPS.search(said)
    factor = _CAPACITY.search(said)
    capacity = (float(factor[1]) if factor else 1.0) if drops else None
    if drops and factor is None:
        row.assume("capacity factor 1, padded")
    if not drops and not _BALANCED.search(said):
        row.assume("experts equally loaded")
    sent = row.integer("ep", 1) > 1 if row.known("ep") else False
    hides = sent and hides_expert_exchange(row)
    if row.text("framework").startswith("HAI-LLM"):
        row.assume("DeepEP, fp8 to the experts")
        return Routing(dispatcher=Dispatcher.FLEX, dispatch_dtype=Dtype.FP8, overlap=hides)
    return Routing(dispatcher=_dispatcher(row), capacity_factor=capacity, overlap=hides)


def _dispatcher(row: Row) -> Dispatcher:
    text = row.text("overlap")
    if _FLEX.search(text):
        return Dispatcher.FLEX
    return Dispatcher.ALL_GATHER if _GATHERED.search(text) else Dispatcher.ALL_TO_ALL


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
    if row.known("vocab_padded") or is_fsdp(stack):
        return 1
    default = TrainingJob.model_fields["make_vocab_size_divisible_by"].default
    row.assume(f"vocabulary padded to a multiple of {default} x tp")
    return int(default)
