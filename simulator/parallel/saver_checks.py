"""Which recomputation and offload a model, a job and a stack allow; each refusal has its fix.

Source: Megatron-LM core/transformer/transformer_config.py (`__post_init__`: recompute_granularity,
recompute_modules, cpu_offloading), core 0.15.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from simulator.errors import InputError, Problem
from simulator.parallel.layout import ParallelLayout, Recompute, RecomputeModule
from simulator.parallel.partition import head_cost, partition_layers
from simulator.workload.job import Optimizer, Recipe, TrainingJob
from simulator.workload.layer import AttentionSpec, LayerSpec, MlaSpec, MlpSpec, MoeSpec
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack
from simulator.workload.stack_choices import SelectiveRecompute

RECOMPUTE_FIELDS = (
    "recompute",
    "recompute_modules",
    "recompute_method",
    "recompute_num_layers",
)
_HOST_OPTIMIZERS = (Optimizer.ADAM, Optimizer.SGD_MOMENTUM, Optimizer.SGD)
"""What runs on the CPU (Megatron-LM core/optimizer: CPUAdam, CPUSGD)."""
_NEEDS_OWN_SCALES = (RecomputeModule.LAYERNORM, RecomputeModule.MOE_ACTIVATION)
_LEAVE_OUT = "leave it out"


def recompute_problems(
    model: ModelSpec, job: TrainingJob, stack: Stack, layout: ParallelLayout
) -> Iterator[Problem]:
    """Yield what is wrong with the modules and the layers that `layout` recomputes."""
    yield from _methods(model, stack, layout)
    yield from _modules(model, job, stack, layout)
    operators = stack.selective is SelectiveRecompute.OPERATORS
    if operators and layout.recompute is Recompute.SELECTIVE and not _plain(model):
        yield Problem(
            key="layout.recompute",
            found=layout.recompute,
            rule=f"{stack.name} recomputes by operator, which is modelled for dense layers with "
            "grouped heads only",
            fix="recompute of none, full",
        )


def offload_problems(
    model: ModelSpec, job: TrainingJob, stack: Stack, layout: ParallelLayout
) -> Iterator[Problem]:
    """Yield what is wrong with what `layout` moves to host memory."""
    if layout.offload_layers:
        yield from _activations(model, stack, layout)
    if layout.optimizer_offload:
        yield from _optimizer(job, stack, layout)


def modules_of(model: ModelSpec) -> list[RecomputeModule]:
    """Return the modules that a model has, in the order of their names' definition."""
    layers = model.layer_groups()
    return [module for module in RecomputeModule if any(_has(layer, module) for layer in layers)]


def _methods(model: ModelSpec, stack: Stack, layout: ParallelLayout) -> Iterator[Problem]:
    number, method = layout.recompute_num_layers, layout.recompute_method
    if number is not None and layout.recompute is not Recompute.FULL:
        yield Problem(
            key="layout.recompute_num_layers",
            found=f"{number}, with recompute {layout.recompute}",
            rule="counts layers of full recomputation",
            fix=f"recompute = full, or {_LEAVE_OUT}",
        )
    if method is not None and number is None:
        yield Problem(
            key="layout.recompute_method",
            found=method,
            rule="says which recompute_num_layers layers go together, and none are given",
            fix=f"recompute_num_layers of 1 or more, or {_LEAVE_OUT}",
        )
    if number is None:
        return
    if not stack.recompute_methods or (method and method not in stack.recompute_methods):
        yield Problem(
            key="layout.recompute_num_layers",
            found=f"{number} layers" + (f", {method}" if method else ""),
            rule=f"{stack.name} does not choose layers so",
            fix=" or ".join([*stack.recompute_methods, f"{_LEAVE_OUT}: all are recomputed"]),
        )
    largest = _largest_chunk(model, stack, layout)
    if largest is not None and number > largest:
        yield Problem(
            key="layout.recompute_num_layers",
            found=str(number),
            rule=f"a virtual stage has at most {largest} layers",
            fix=f"at most {largest}",
        )


def _largest_chunk(model: ModelSpec, stack: Stack, layout: ParallelLayout) -> int | None:
    """Return the layers of the fullest virtual stage; None where they cannot be spread."""
    try:
        layers = model.num_hidden_layers
        return max(partition_layers(layout, layers, stack.partition, head_cost(model)))
    except InputError:
        return None


def _modules(
    model: ModelSpec, job: TrainingJob, stack: Stack, layout: ParallelLayout
) -> Iterator[Problem]:
    modules = layout.recompute_modules
    if not modules:
        return
    if layout.recompute is not Recompute.SELECTIVE:
        yield _module(modules, f"are of selective recomputation, not {layout.recompute}", None)
        return
    if doubled := [module for module, count in Counter(modules).items() if count > 1]:
        yield _module(doubled, "stand more than once", "each once")
    legal = [module for module in modules_of(model) if module in stack.recompute_modules]
    if missing := [module for module in modules if module not in stack.recompute_modules]:
        yield _module(missing, f"{stack.name} does not recompute by this", _one_of(legal))
    if absent := [module for module in modules if module not in modules_of(model)]:
        yield _module(absent, f"{model.name} has none", _one_of(legal))
    scaled = [module for module in modules if module in _NEEDS_OWN_SCALES]
    if scaled and job.effective_recipe is Recipe.DELAYED:
        rule = "delayed scaling would see the same tensor twice (Megatron-LM refuses it)"
        yield _module(scaled, rule, f"another job.recipe, or {_LEAVE_OUT}")
    if RecomputeModule.SHARED_EXPERTS in modules and stack.overlap.shared_expert:
        rule = f"{stack.name} runs shared experts beside the dispatch (overlap.shared_expert)"
        yield _module([RecomputeModule.SHARED_EXPERTS], rule, None)


def _has(layer: LayerSpec, module: RecomputeModule) -> bool:
    match module:
        case RecomputeModule.CORE_ATTENTION:
            return isinstance(layer.attention, AttentionSpec | MlaSpec)
        case RecomputeModule.LAYERNORM:
            return layer.norms > 0
        case RecomputeModule.MLA_UP_PROJECTION:
            return isinstance(layer.attention, MlaSpec)
        case RecomputeModule.MLP:
            return isinstance(layer.mlp, MlpSpec)
        case RecomputeModule.MOE_ACTIVATION | RecomputeModule.MOE:
            return isinstance(layer.mlp, MoeSpec)
        case RecomputeModule.SHARED_EXPERTS:
            return isinstance(layer.mlp, MoeSpec) and layer.mlp.shared_intermediate_size > 0


def _plain(model: ModelSpec) -> bool:
    return not any(
        isinstance(layer.attention, MlaSpec) or isinstance(layer.mlp, MoeSpec)
        for layer in model.layer_groups()
    )


def _activations(model: ModelSpec, stack: Stack, layout: ParallelLayout) -> Iterator[Problem]:
    key, found = "layout.offload_layers", str(layout.offload_layers)
    if not stack.offload.activations:
        rule = f"{stack.name} does not move activations to host memory"
        yield Problem(key=key, found=found, rule=rule, fix="0, or another job.stack")
    if layout.pp > 1:
        rule = f"activations are offloaded with pp = 1 only, not {layout.pp}"
        yield Problem(key=key, found=found, rule=rule, fix="0, or pp = 1")
    if layout.offload_layers >= model.num_hidden_layers:
        most = model.num_hidden_layers - 1
        rule = f"at least one of the {model.num_hidden_layers} layers stays on the device"
        yield Problem(key=key, found=found, rule=rule, fix=f"at most {most}")
    if layout.recompute is not Recompute.NONE and not stack.offload.with_recompute:
        rule = f"{stack.name} does not combine it with recomputation"
        yield Problem(
            key=key, found=f"{found}, with {layout.recompute}", rule=rule, fix="recompute = none"
        )


def _optimizer(job: TrainingJob, stack: Stack, layout: ParallelLayout) -> Iterator[Problem]:
    key, found = "layout.optimizer_offload", f"{layout.optimizer_offload:g}"
    if not stack.offload.optimizer:
        rule = f"{stack.name} does not update optimizer states on the host"
        yield Problem(key=key, found=found, rule=rule, fix="0, or another job.stack")
    if not layout.zero_stage:
        rule = "offloaded states are those of a sharded optimizer: zero_stage of 1 or more"
        fix = "zero_stage of " + ", ".join(str(stage) for stage in stack.zero_stages if stage)
        yield Problem(key=key, found=f"{found}, zero_stage 0", rule=rule, fix=fix)
    if job.optimizer not in _HOST_OPTIMIZERS:
        rule = "only " + ", ".join(_HOST_OPTIMIZERS) + " run on the host"
        yield Problem(key=key, found=f"{found}, {job.optimizer}", rule=rule, fix="0")


def _module(modules: Sequence[RecomputeModule], rule: str, fix: str | None) -> Problem:
    return Problem(
        key="layout.recompute_modules", found=", ".join(modules), rule=rule, fix=fix or _LEAVE_OUT
    )


def _one_of(modules: list[RecomputeModule]) -> str:
    return "one of: " + ", ".join(modules) if modules else _LEAVE_OUT
