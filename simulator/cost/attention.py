"""Fused (flash) attention: query blocks spread over the compute units."""

from __future__ import annotations

from math import ceil

from simulator.cost.gemm import peak_flops
from simulator.hardware.accelerator import Accelerator, Dtype
from simulator.hardware.kernel_constants import AttentionConstants
from simulator.workload.operator import FLOPS_PER_SCORE, AttentionShape

_NORM = 4
"""Exponent that joins two overlapping times: close to the larger one, above both."""
_BACKWARD_TENSORS = 2.0
"""Backward reads Q, K, V, O, dO and writes dQ, dK, dV; forward reads Q, K, V and writes O."""
_CACHE_TENSORS = 4.0
"""K and V, each read and written once more."""


def flash_forward_seconds(
    shape: AttentionShape,
    *,
    dtype: Dtype,
    gpu: Accelerator,
    constants: AttentionConstants,
    sustained: bool = False,
    write_cache: bool = False,
) -> float:
    """Return the seconds of a fused attention forward pass on the device, launch not counted.

    With d = mean_head_dim and blocks of `tile` queries on SM compute units:
        score = 4-norm(4 d / efficiency, softmax_flops) / (peak / SM)
        w = batch heads sum over documents of ceil(their queries / tile) / SM
        compute = tile score (w (mean_keys + tile/2 + k0) + tail (longest + k0))
    The tail is the last block that runs while other units idle. It is joined by a 4-norm with the
    time to move Q, K, V and O; a fixed start is added. `write_cache` adds the copy of K and V
    into an inference cache, which training does not make.

    Raises:
        UnsupportedError: the accelerator's data sheet gives no peak for `dtype`.

    Source: the blocks of Dao, "FlashAttention-2", 2023, section 3.
    """
    busy = _compute(shape, gpu, constants, peak_flops(gpu, dtype))
    if sustained:
        busy *= constants.sustained_factor
    moving = _moving(shape, dtype, gpu, constants)
    seconds = float((busy**_NORM + moving**_NORM) ** (1 / _NORM) + constants.start)
    return seconds + _cache_write(shape, dtype, gpu, constants) if write_cache else seconds


def flash_backward_seconds(
    shape: AttentionShape,
    *,
    dtype: Dtype,
    gpu: Accelerator,
    constants: AttentionConstants,
    sustained: bool = False,
) -> float:
    """Return the seconds of a fused attention backward pass on the device, launch not counted.

    Five products against two in the forward pass, at a lower efficiency:
    compute_backward = backward_factor compute_forward; twice the tensors are moved.

    Raises:
        UnsupportedError: the accelerator's data sheet gives no peak for `dtype`.

    Source: Dao, "FlashAttention-2", 2023, section 3.1.2 (the five products).
    """
    busy = constants.backward_factor * _compute(shape, gpu, constants, peak_flops(gpu, dtype))
    if sustained:
        busy *= constants.sustained_factor
    moving = _BACKWARD_TENSORS * _moving(shape, dtype, gpu, constants)
    return float((busy**_NORM + moving**_NORM) ** (1 / _NORM) + constants.start)


def attention_bytes(shape: AttentionShape, *, dtype: Dtype, backward: bool = False) -> float:
    """Return the bytes of Q, K, V and O, each moved once; of the backward pass twice as many."""
    queries = 2 * shape.heads * shape.seq_q
    keys = 2 * shape.kv_heads * shape.seq_k
    moved = float(dtype.bytes * shape.batch * shape.mean_head_dim * (queries + keys))
    return _BACKWARD_TENSORS * moved if backward else moved


def _compute(
    shape: AttentionShape, gpu: Accelerator, constants: AttentionConstants, peak: float
) -> float:
    tile, units = constants.query_tile, gpu.compute_units
    matrix = FLOPS_PER_SCORE * shape.mean_head_dim / constants.efficiency
    flops = float((matrix**_NORM + constants.softmax_flops**_NORM) ** (1 / _NORM))
    score = flops / (peak / units)
    stretches = shape.stretches
    blocks = sum(s.repeats * ceil(shape.queries_in(s.keys) / tile) for s in stretches)
    waves = shape.batch * shape.heads * blocks / units
    masked = tile / 2 if shape.causal else 0.0
    keys = max(s.keys for s in stretches)
    longest = min(shape.window or keys, keys)
    mean = shape.mean_keys + masked + constants.k_overhead
    return tile * score * (waves * mean + constants.tail * (longest + constants.k_overhead))


def _moving(
    shape: AttentionShape, dtype: Dtype, gpu: Accelerator, constants: AttentionConstants
) -> float:
    moved = attention_bytes(shape, dtype=dtype)
    return float(moved / (gpu.memory_bandwidth * constants.memory_efficiency))


def _cache_write(
    shape: AttentionShape, dtype: Dtype, gpu: Accelerator, constants: AttentionConstants
) -> float:
    tokens = shape.batch * shape.seq_k
    moved = _CACHE_TENSORS * dtype.bytes * tokens * shape.kv_heads * shape.head_dim
    bandwidth = gpu.memory_bandwidth * constants.cache_efficiency
    return float(moved / bandwidth + tokens * constants.cache_token)
