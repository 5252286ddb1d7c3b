"""Forecasts of measured layers and of whole training steps, through the same code as scenarios."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import assert_never

from calibrate.points import LayerPart, LayerPoint, StepPoint
from simulator.api import Forecaster
from simulator.cost.blocks import BlockCost
from simulator.cost.update import update_seconds
from simulator.errors import InputError, Problem
from simulator.files import is_there
from simulator.hardware.cluster import ScaleUpKind
from simulator.hardware.profile import Profile
from simulator.parallel.layout import ParallelLayout
from simulator.results import Category
from simulator.workload.job import TrainingJob
from simulator.workload.load import load_model
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack, load_stack

_LAYER_STACKS = {False: "pytorch-eager", True: "pytorch-gloo"}
"""By whether the machine launches itself."""
_COMMUNICATION = frozenset(
    {Category.TENSOR_COMM, Category.CONTEXT_COMM, Category.EXPERT_COMM, Category.HOST_COMM}
)


def predict_step(
    point: StepPoint, profile: Profile, folder: Path | None = None
) -> tuple[float, float]:
    """Return the seconds of a step, and the bytes that the allocator of the fullest rank gives out.

    Files that the point names lie in `folder`, beside its record, or where a scenario finds them.

    Raises:
        InputError: the model or stack is unknown, or the layout breaks a rule.
    """
    layout = point.layout
    found = load_stack(point.job.stack, relative_to=_home_of(point.job.stack, folder))
    stack = _with_buckets(found, point.bucket_bytes)
    model = model_of(point.model, point.layers, folder)
    forecaster = Forecaster(model, point.job, stack, profile, layout.world_size)
    forecaster.check(layout)
    result = forecaster.simulate(layout, spans=False)
    return result.step_time, max(use.allocated for use in result.memory)


def launches_itself(profile: Profile) -> bool:
    """Return whether the processor that communicates is the one that launches, a CPU.

    A call that is timed alone then takes as long as one among many.
    """
    return profile.node.scale_up.kind is ScaleUpKind.SHARED_MEMORY


def layer_stack(profile: Profile) -> str:
    """Return the stack whose kernels a layer point runs: plain PyTorch, one after another."""
    return _LAYER_STACKS[launches_itself(profile)]


def predict_layer(point: LayerPoint, profile: Profile, folder: Path | None = None) -> float:
    """Return the seconds of one pass over a part of a model on one rank, collectives left out.

    The optimizer's are those of a model with two layers less those with one.

    Raises:
        InputError: the model is unknown, or its layers do not divide by tp.
    """
    match point.part:
        case LayerPart.OPTIMIZER:
            one, two = (_one_rank(point, layers, profile, folder) for layers in (1, 2))
            return _update(*two) - _update(*one)
        case LayerPart.LAYER | LayerPart.EMBEDDING | LayerPart.HEAD:
            return _pass_over(point, *_one_rank(point, 1, profile, folder))
        case _:
            assert_never(point.part)


def model_of(name: str, layers: int | None, folder: Path | None = None) -> ModelSpec:
    """Return a model, cut to its first `layers` layers where that is not None.

    It lies in `folder`, or where a scenario finds it.

    Raises:
        InputError: the model is unknown or has fewer layers.
    """
    spec = load_model(name, relative_to=_home_of(name, folder)).spec
    if layers is None or layers == spec.num_hidden_layers:
        return spec
    if layers > spec.num_hidden_layers:
        rule = f"must be at most num_hidden_layers {spec.num_hidden_layers} of {spec.name}"
        raise InputError(Problem(key="layers", found=str(layers), rule=rule))
    types, moe = spec.layer_types, spec.moe
    if moe is not None:
        moe = moe.model_copy(
            update={"dense_layers": tuple(i for i in moe.dense_layers if i < layers)}
        )
    cut = {
        "num_hidden_layers": layers,
        "layer_types": None if types is None else types[:layers],
        "no_rope_layers": tuple(i for i in spec.no_rope_layers if i < layers),
        "moe": moe,
        "published_parameters": None,
        "published_active_parameters": None,
    }
    return spec.model_copy(update=cut)


def _home_of(name: str, folder: Path | None) -> Path | None:
    """Return the folder, where a file of this name lies in it."""
    return folder if folder is not None and is_there(folder / name) else None


def _pass_over(point: LayerPoint, forecaster: Forecaster, layout: ParallelLayout) -> float:
    program = forecaster.program(layout)
    (chunk,) = program.chunks
    (layer, _), *_ = chunk.whole.layers
    part = layer if point.part is LayerPart.LAYER else str(point.part)
    priced = forecaster.costs.priced_pass(program, part)
    return _without_communication(priced.backward if point.backward else priced.forward)


def _update(forecaster: Forecaster, layout: ParallelLayout) -> float:
    return update_seconds(forecaster.program(layout), 0, forecaster.costs.kernels)


def _one_rank(
    point: LayerPoint, layers: int, profile: Profile, folder: Path | None
) -> tuple[Forecaster, ParallelLayout]:
    software = profile.constants.software
    stack = load_stack(software.stack if software else layer_stack(profile))
    layout = ParallelLayout(tp=point.tp, micro_batch_size=point.micro_batch)
    job = TrainingJob(
        global_batch_size=point.micro_batch,
        seq_length=point.seq,
        precision=point.dtype,
        stack=stack.name,
        make_vocab_size_divisible_by=1,
    )
    model = model_of(point.model, layers, folder)
    forecaster = Forecaster(model, job, stack, profile, layout.world_size)
    forecaster.check(layout)
    return forecaster, layout


def _without_communication(cost: BlockCost) -> float:
    own = (seconds for kind, seconds in cost.by_category.items() if kind not in _COMMUNICATION)
    return sum(own)


def _with_buckets(stack: Stack, size: float | None) -> Stack:
    """Return a stack whose gradient buckets are of `size` bytes."""
    if size is None:
        return stack
    parameters = max(1, ceil(size / stack.numerics.gradient_bytes))
    buckets = {"bucket_parameters": parameters}
    if stack.first_bucket_parameters is not None:
        buckets["first_bucket_parameters"] = parameters
    return stack.model_copy(update=buckets)
