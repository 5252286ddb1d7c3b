"""Which number formats, optimizers and frozen parts a job may ask of a layout."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.errors import Problem
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ZERO_GRADIENTS, DataParallel, ParallelLayout
from simulator.parallel.numbers import with_dtypes
from simulator.workload.job import Dtypes, LoraTarget, Optimizer, Part, Recipe, TrainingJob
from simulator.workload.layer import AttentionSpec, MlpSpec
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack

NUMBER_FIELDS = ("tp", "dp", "cp", "zero_stage", "data_parallel", "optimizer_offload")
_FP8_RECIPES = (
    Recipe.DELAYED,
    Recipe.TENSORWISE,
    Recipe.ROWWISE,
    Recipe.BLOCKWISE,
    Recipe.MXFP8,
)
_RECIPES = {Dtype.FP8: _FP8_RECIPES, Dtype.FP4: (Recipe.NVFP4, Recipe.MXFP4)}
_TRAINING = (Dtype.FP32, Dtype.TF32, Dtype.BF16, Dtype.FP16, Dtype.FP8, Dtype.FP4)
_OFFERED: dict[str, tuple[Dtype, ...]] = {
    "gradient": (Dtype.FP32, Dtype.BF16, Dtype.FP16),
    "reduce": (Dtype.FP32, Dtype.BF16, Dtype.FP16, Dtype.FP8, Dtype.INT8, Dtype.FP4),
    "master": (Dtype.FP32, Dtype.BF16, Dtype.FP16),
    "state": (Dtype.FP32, Dtype.BF16, Dtype.FP16, Dtype.FP8),
}
"""Formats of the precision-aware optimizer (Transformer Engine 2.x pytorch/optimizers/
fused_adam.py); gradients on the wire also in 8 and 4 bits (Wang et al. 2023, "ZeRO++")."""
_LEAVE_OUT = "leave it out"


def number_problems(
    model: ModelSpec, job: TrainingJob, stack: Stack, layout: ParallelLayout
) -> Iterator[Problem]:
    """Yield what contradicts itself, or is not modelled, in a job's numbers."""
    yield from _precision(job)
    yield from _dtypes(job, stack)
    yield from _optimizer(job, layout)
    yield from _compression(model, job, layout)
    yield from _frozen(model, job, layout)


def _precision(job: TrainingJob) -> Iterator[Problem]:
    if job.precision not in _TRAINING:
        fix = ", ".join(_TRAINING)
        yield _problem("job.precision", job.precision, "nothing is trained in this format", fix)
        return
    offered = _RECIPES.get(job.precision, ())
    if job.recipe is not None and job.recipe not in offered:
        rule = f"{job.precision} is scaled by {', '.join(offered) or 'no recipe'}"
        yield _problem("job.recipe", job.recipe, rule, offered[0] if offered else _LEAVE_OUT)
    elif job.fp8_parameters and job.precision is not Dtype.FP8:
        rule = f"weights in 8 bits need precision fp8, which is {job.precision}"
        yield _problem("job.fp8_parameters", "true", rule, "false")
    elif job.fp8_parameters and job.recipe is Recipe.ROWWISE:
        rule = "rowwise scales weights along either dimension anew in each pass"
        yield _problem("job.fp8_parameters", "true", rule, "false, or recipe = tensorwise")


def _dtypes(job: TrainingJob, stack: Stack) -> Iterator[Problem]:
    for name, offered in _OFFERED.items():
        dtype = getattr(job.dtypes, name)
        if dtype is not None and dtype not in offered:
            rule = f"is kept as one of {', '.join(offered)}"
            yield _problem(f"job.dtypes.{name}", dtype, rule, offered[0])
    if job.dtypes == Dtypes():
        return
    numerics = with_dtypes(stack, job).numerics
    if numerics.reduce_bytes > numerics.gradient_bytes:
        rule = (
            f"gradients of {numerics.gradient_bytes:g} bytes gain nothing from "
            f"{numerics.reduce_bytes:g} bytes on the wire"
        )
        yield _problem("job.dtypes.reduce", str(job.dtypes.reduce), rule, _LEAVE_OUT)
    if job.dtypes.master is not None and not stack.numerics.master_bytes:
        rule = f"{stack.name} updates the parameters themselves"
        yield _problem("job.dtypes.master", job.dtypes.master, rule, _LEAVE_OUT)
    if job.dtypes.state is not None and job.optimizer is Optimizer.ADAM_8BIT:
        rule = "adam-8bit has its own format of states"
        yield _problem("job.dtypes.state", job.dtypes.state, rule, f"{_LEAVE_OUT}, or adam")


def _optimizer(job: TrainingJob, layout: ParallelLayout) -> Iterator[Problem]:
    if job.optimizer is Optimizer.MUON and layout.zero_stage >= ZERO_GRADIENTS:
        rule = "muon orthogonalises whole gradients, which zero_stage 2 and 3 cut"
        yield _problem("layout.zero_stage", str(layout.zero_stage), rule, "0 or 1")
    if job.lora is not None and job.optimizer in (Optimizer.MUON, Optimizer.ADAFACTOR):
        rule = f"adapters updated by {job.optimizer} are not modelled"
        yield _problem("job.optimizer", job.optimizer, rule, Optimizer.ADAM)


def _compression(model: ModelSpec, job: TrainingJob, layout: ParallelLayout) -> Iterator[Problem]:
    if job.powersgd_rank is None:
        return
    found, rules = str(job.powersgd_rank), []
    if layout.zero_stage or layout.data_parallel is not DataParallel.ALL_REDUCE:
        rule = "PowerSGD compresses all-reduced gradients of whole replicas"
        beside = f"{found}, zero_stage {layout.zero_stage}, {layout.data_parallel}"
        fix = f"zero_stage 0 and all-reduce, or {_LEAVE_OUT}"
        yield _problem("job.powersgd_rank", beside, rule, fix)
    if model.moe is not None:
        rules.append("PowerSGD of routed experts is not modelled")
    if job.lora is not None:
        rules.append("adapters are of low rank already")
    if layout.data_ranks == 1:
        rules.append("with dp x cp = 1 no gradient is sent")
    for rule in rules:
        yield _problem("job.powersgd_rank", found, rule, _LEAVE_OUT)


def _frozen(model: ModelSpec, job: TrainingJob, layout: ParallelLayout) -> Iterator[Problem]:
    if job.freezes and layout.optimizer_offload:
        rule = "states on the host beside frozen parts are not modelled"
        yield _problem("layout.optimizer_offload", str(layout.optimizer_offload), rule, "0")
    if job.lora is not None:
        yield from _adapters(model, job, layout)
        return
    parts = set(job.freeze)
    if len(parts) < len(job.freeze):
        rule = "names a part more than once"
        yield _problem("job.freeze", ", ".join(job.freeze), rule, ", ".join(sorted(parts)))
    if Part.EXPERTS in parts and model.moe is None:
        yield _problem("job.freeze", Part.EXPERTS, "a dense model has no experts", _LEAVE_OUT)
    if model.tie_word_embeddings and len(parts & {Part.EMBEDDING, Part.HEAD}) == 1:
        rule = "embedding and head share one table: both are frozen or neither"
        yield _problem("job.freeze", ", ".join(job.freeze), rule, "both or neither")
    if parts >= set(Part) - (set() if model.moe else {Part.EXPERTS}):
        yield _problem("job.freeze", ", ".join(job.freeze), "nothing is trained", "fewer parts")


def _adapters(model: ModelSpec, job: TrainingJob, layout: ParallelLayout) -> Iterator[Problem]:
    lora = job.lora
    assert lora is not None, "the caller has seen it"
    if job.freeze:
        rule = "beside adapters all is frozen already"
        yield _problem("job.freeze", ", ".join(job.freeze), rule, _LEAVE_OUT)
    if lora.rank % layout.tp:
        rule = f"the rank of adapters must divide by tp = {layout.tp}"
        fix = f"a multiple of {layout.tp}, or a tp that divides {lora.rank}"
        yield _problem("job.lora.rank", str(lora.rank), rule, fix)
    if lora.rank > model.hidden_size:
        rule = f"adapters are of lower rank than what they stand beside: {model.hidden_size} wide"
        yield _problem("job.lora.rank", str(lora.rank), rule, f"at most {model.hidden_size}")
    targets = ", ".join(lora.targets)
    if len(set(lora.targets)) < len(lora.targets):
        rule = "names a layer more than once"
        yield _problem("job.lora.targets", targets, rule, ", ".join(dict.fromkeys(lora.targets)))
    attention = {LoraTarget.QKV, LoraTarget.PROJ} & set(lora.targets)
    mlp = {LoraTarget.FC1, LoraTarget.FC2} & set(lora.targets)
    for layer in model.layer_groups():
        if attention and not isinstance(layer.attention, AttentionSpec | None):
            rule = "adapters are modelled beside grouped-query attention only"
            yield _problem("job.lora.targets", targets, rule, "linear_fc1, linear_fc2")
            return
        if mlp and not isinstance(layer.mlp, MlpSpec | None):
            rule = "adapters are modelled beside dense MLPs only"
            yield _problem("job.lora.targets", targets, rule, "linear_qkv, linear_proj")
            return
    if model.num_nextn_predict_layers:
        rule = "adapters of multi-token-prediction modules are not modelled"
        yield _problem("job.lora", str(lora.rank), rule, "num_nextn_predict_layers = 0")


def gpu_problem(precision: Dtype, recipe: Recipe | None, *, has_fp4: bool) -> Problem | None:
    """Return what keeps an accelerator from a recipe; None where nothing does.

    Scales of blocks inside the matrix units came with the ones for FP4 (NVIDIA Blackwell, AMD
    CDNA 4); others would have to unscale block by block.
    """
    if precision is Dtype.FP8 and recipe is Recipe.MXFP8 and not has_fp4:
        rule = "this accelerator has no block-scaled matrix units"
        others = ", ".join(other for other in _FP8_RECIPES if other is not Recipe.MXFP8)
        return _problem("job.recipe", Recipe.MXFP8, rule, f"one of: {others}")
    return None


def _problem(key: str, found: str, rule: str, fix: str) -> Problem:
    return Problem(key=key, found=str(found), rule=rule, fix=str(fix))
