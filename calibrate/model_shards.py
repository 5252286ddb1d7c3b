"""What a measured layer may hold, and the share of it that one tensor-parallel rank has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from simulator.errors import Problem, UnsupportedError
from simulator.workload.layer import (
    AttentionSpec,
    LayerSpec,
    LinearSpec,
    MlaSpec,
    MlpSpec,
    MoeSpec,
    Norm,
)
from simulator.workload.model import ModelSpec, Position

_NORMS = (0, 1, 2, 4)


def check_model(spec: ModelSpec) -> None:
    """Raise `UnsupportedError` where the measuring modules lack a part of a whole model."""
    problems = []
    if spec.position is Position.ALIBI:
        problems.append(_problem("position", "alibi", "a bias on every attention score"))
    if spec.num_nextn_predict_layers:
        found = str(spec.num_nextn_predict_layers)
        problems.append(_problem("num_nextn_predict_layers", found, "multi-token prediction"))
    if spec.norm is Norm.RMSNORM and spec.norm_bias:
        problems.append(_problem("norm_bias", "true", "an RMSNorm with a bias"))
    if problems:
        raise UnsupportedError(*problems)


def check_reach(spec: AttentionSpec, seq: int) -> None:
    """Raise `UnsupportedError` where a query of `seq` tokens does not see all before it.

    Fused causal attention computes all keys: a window or chunk below `seq` would be timed wrong.
    """
    reach = min(spec.window or seq, spec.chunk or seq)
    if reach < seq:
        rule = f"attention over {reach} keys cannot be measured at {seq} tokens"
        raise UnsupportedError(Problem(key="seq", rule=rule, fix=f"use at most {reach}"))


def check_layer(spec: LayerSpec, activations: Sequence[str]) -> None:
    """Raise `UnsupportedError`, all reasons at once, where the modules lack a part of a layer."""
    problems = [*_attention_problems(spec), *_mlp_problems(spec, activations)]
    if spec.norms not in _NORMS:
        problems.append(_problem("norms_per_layer", str(spec.norms), "3 norms a layer"))
    if spec.norm is Norm.RMSNORM and spec.norm_bias:
        problems.append(_problem("norm_bias", "true", "an RMSNorm with a bias"))
    if spec.parallel and (spec.attention is None or spec.mlp is None):
        problems.append(_problem("parallel_block", "true", "a parallel block of one part"))
    if problems:
        raise UnsupportedError(*problems)


def local_layer(spec: LayerSpec, tp: int) -> LayerSpec:
    """Return the layer that one of `tp` ranks computes: its heads and its channels of the MLP.

    Key and value heads are repeated where there are fewer than ranks, as Megatron-LM does.

    Raises:
        UnsupportedError: heads or channels do not divide.
    """
    attention, mlp = spec.attention, spec.mlp
    if isinstance(attention, AttentionSpec):
        attention = _local_attention(attention, tp)
    if isinstance(mlp, MlpSpec):
        width = _divided(mlp.intermediate_size, tp, "intermediate_size")
        mlp = replace(mlp, intermediate_size=width)
    return replace(spec, attention=attention, mlp=mlp)


def whole_layer(spec: LayerSpec, tp: int) -> LayerSpec:
    """Return the layer that `tp` ranks cut between them, each into its `local_layer`.

    Raises:
        UnsupportedError: heads or channels do not divide.
    """
    local, attention = local_layer(spec, tp).attention, spec.attention
    if isinstance(local, AttentionSpec) and isinstance(attention, AttentionSpec):
        repeated = local.num_key_value_heads * tp
        attention = replace(attention, num_key_value_heads=repeated)
    return replace(spec, attention=attention)


def _local_attention(spec: AttentionSpec, tp: int) -> AttentionSpec:
    heads = _divided(spec.num_attention_heads, tp, "num_attention_heads")
    groups = spec.num_key_value_heads
    repeated = groups < tp and tp % groups == 0
    groups = 1 if repeated else _divided(groups, tp, "num_key_value_heads")
    return replace(spec, num_attention_heads=heads, num_key_value_heads=groups)


def _attention_problems(spec: LayerSpec) -> list[Problem]:
    attention = spec.attention
    if isinstance(attention, MlaSpec):
        return [_problem("mla", "latent attention", "latent attention")]
    if isinstance(attention, LinearSpec):
        return [_problem("attention", "linear", "a matrix in the place of attention")]
    if attention is not None and attention.sinks:
        return [_problem("attention_sinks", "true", "a learned sink in the softmax")]
    return []


def _mlp_problems(spec: LayerSpec, activations: Sequence[str]) -> list[Problem]:
    mlp = spec.mlp
    if isinstance(mlp, MoeSpec):
        return [_problem("moe", "a mixture of experts", "a mixture of experts")]
    if isinstance(mlp, LinearSpec):
        return [_problem("mlp", "linear", "a matrix in the place of an MLP")]
    if mlp is not None and mlp.activation not in activations:
        fix = "one of: " + ", ".join(activations)
        rule = "is no activation that can be measured"
        return [Problem(key="activation", found=mlp.activation, rule=rule, fix=fix)]
    return []


def _divided(count: int, tp: int, key: str) -> int:
    if count % tp == 0:
        return count // tp
    near = max(n for n in range(1, min(count, tp) + 1) if count % n == 0)
    rule = f"tp {tp} must divide {key} {count}"
    raise UnsupportedError(Problem(key="tp", found=str(tp), rule=rule, fix=f"use tp = {near}"))


def _problem(key: str, found: str, what: str) -> Problem:
    fix = "measure a dense model with grouped heads"
    return Problem(key=key, found=found, rule=f"{what} cannot be measured yet", fix=fix)
