"""How long a point takes to measure, roughly: for the progress bar and the budget."""

from __future__ import annotations

from typing import assert_never

from calibrate.limits import APART_SECONDS, SUSTAIN_SECONDS, WARM_UP_MEDIANS, Limits, warm_up_blocks
from calibrate.plan_case import Case
from calibrate.points import (
    AttentionPoint,
    CollectivePoint,
    GemmPoint,
    HostCopyPoint,
    InterferencePoint,
    KernelSumPoint,
    LaunchPoint,
    LayerPart,
    LayerPoint,
    MemoryBoundPoint,
    Point,
    SoakPoint,
    StepPoint,
    Timing,
    UpkeepPoint,
)
from simulator.units import GB
from simulator.workload.load import load_model
from simulator.workload.model import ModelSpec
from simulator.workload.operator import AttentionShape, FlashAttention

_BANDWIDTH = 10 * GB
"""Assumed of memory where no copy was tried, bytes/s: a slow host's."""
_PREPARE = 0.1
"""Seconds to make tensors and to capture a graph, roughly: more for large ones."""
_LOOPS_OF_INTERFERENCE = 3
"""The kernel alone, the collective alone, and both."""
_BACKWARD = 2
"""Passes of work in a backward pass over those of the forward pass."""
_TRAINED = 4
"""Tensors of a parameter's size in training: weight, gradient and two moments of Adam."""
_STEP_FLOPS = 6.0
"""A parameter and token: forward 2, backward 4."""


def seconds_of(point: Point, case: Case) -> float:
    """Return the seconds that measuring a point is expected to take, start-up apart."""
    limits = case.plan.limits
    match point:
        case SoakPoint():
            return float(point.duration)
        case InterferencePoint():
            return _LOOPS_OF_INTERFERENCE * _loop_seconds(_run_seconds(point, case), limits)
        case CollectivePoint(timing=Timing.APART):
            return _loop_seconds(APART_SECONDS + _run_seconds(point, case), limits)
        case GemmPoint(sustained=True):
            return SUSTAIN_SECONDS + _loop_seconds(_run_seconds(point, case), limits)
        case _:
            return _loop_seconds(_run_seconds(point, case), limits)


def _loop_seconds(run: float, limits: Limits) -> float:
    """Return the seconds of the loop over runs of `run` seconds: warm-up and blocks."""
    short = max(run, limits.block_seconds / WARM_UP_MEDIANS)
    warm_up = run + WARM_UP_MEDIANS * warm_up_blocks(run, limits) * short
    blocks = limits.blocks * max(run, limits.block_seconds)
    return _PREPARE + float(min(warm_up + blocks, limits.max_seconds + run))


def _run_seconds(point: Point, case: Case) -> float:
    """Return the seconds of one run."""
    flops, bandwidth = case.facts.flops, case.facts.bandwidth or _BANDWIDTH
    match point:
        case GemmPoint():
            return 2.0 * point.m * point.n * point.k / flops
        case AttentionPoint():
            return _attention_flops(point) / flops
        case MemoryBoundPoint() | HostCopyPoint() | UpkeepPoint():
            return _bytes_of(point, case) / bandwidth
        case CollectivePoint() | InterferencePoint():
            section = case.plan.collectives
            return point.bytes / float(section.expected if section is not None else _BANDWIDTH)
        case LayerPoint():
            return _layer_flops(point, _spec(point.model, case)) / flops
        case StepPoint():
            return _step_flops(point, _spec(point.model, case)) / flops
        case SoakPoint():
            return point.duration
        case LaunchPoint() | KernelSumPoint():
            return 0.0
        case _:
            assert_never(point)


def _attention_flops(point: AttentionPoint) -> float:
    shape = AttentionShape(
        batch=point.batch,
        seq_q=point.seq,
        seq_k=point.seq,
        heads=point.heads,
        kv_heads=point.kv_heads,
        head_dim=point.head_dim,
        causal=point.causal,
    )
    return FlashAttention(name="attention", shape=shape, backward=point.backward).flops


def _spec(name: str, case: Case) -> ModelSpec:
    subject = case.subject
    return subject.spec if subject and subject.name == name else load_model(name).spec


def _layer_flops(point: LayerPoint, spec: ModelSpec) -> float:
    """Return 2 FLOP a parameter and token, attention scores apart."""
    parameters = {
        LayerPart.LAYER: max(layer.active_parameters for layer in spec.layer_groups()),
        LayerPart.EMBEDDING: spec.hidden_size,
        LayerPart.HEAD: spec.vocab_size * spec.hidden_size,
        LayerPart.OPTIMIZER: 0,
    }[point.part]
    tokens = point.micro_batch * point.seq
    return 2.0 * parameters / point.tp * tokens * (_BACKWARD if point.backward else 1)


def _bytes_of(point: MemoryBoundPoint | HostCopyPoint | UpkeepPoint, case: Case) -> float:
    """Return what is moved; of a layer's parameters all that training has, once each way."""
    if not isinstance(point, UpkeepPoint):
        return float(point.bytes)
    parameters = max(layer.parameters for layer in _spec(point.model, case).layer_groups())
    return 2.0 * _TRAINED * point.dtype.bytes * parameters / point.tp


def _step_flops(point: StepPoint, spec: ModelSpec) -> float:
    """Return the FLOP of one rank's step, attention scores apart."""
    layers = spec.layer_groups(0, point.layers)
    parameters = sum(layer.active_parameters * n for layer, n in layers.items())
    parameters += spec.vocab_size * spec.hidden_size
    return _STEP_FLOPS * parameters * point.job.tokens_per_step / point.layout.world_size
