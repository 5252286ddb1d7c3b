"""Matrix products: the best tile and split-K of a tile and wave model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from simulator.errors import Problem, UnsupportedError
from simulator.hardware.accelerator import Accelerator, Dtype
from simulator.hardware.kernel_constants import CastConstants, GemmConstants, GemmLayout

Array: TypeAlias = NDArray[np.float64]
Size = TypeVar("Size", float, Array)

_NORM = 4
"""Exponent that joins two overlapping times: close to the larger one, above both."""
_FLOPS = 2.0
"""A multiplication and an addition."""
_ACCUMULATED_BYTES = 8.0
"""A float32 output that is read, added to and written."""
_PARTIAL_BYTES = 8.0
"""A float32 partial sum of a split k that is written and read."""
_OUTPUT_BYTES = {
    Dtype.FP32: 4.0,
    Dtype.TF32: 4.0,
    Dtype.BF16: 2.0,
    Dtype.FP16: 2.0,
    Dtype.FP8: 2.0,
    Dtype.FP4: 2.0,
    Dtype.INT8: 4.0,
}


@dataclass(slots=True, kw_only=True)
class _Call:
    dtype: Dtype
    gpu: Accelerator
    constants: GemmConstants
    batch: int = 1
    accumulate: bool = False
    layout: GemmLayout = GemmLayout.FORWARD
    sustained: bool = False
    cast_input: bool = False
    grouped: bool = False


def gemm_seconds(
    m: int,
    n: int,
    k: int,
    *,
    dtype: Dtype,
    gpu: Accelerator,
    constants: GemmConstants,
    batch: int = 1,
    accumulate: bool = False,
    layout: GemmLayout = GemmLayout.FORWARD,
    sustained: bool = False,
    cast_input: bool = False,
    grouped: bool = False,
) -> float:
    """Return the seconds of `batch` products (m, k) x (k, n) on the device, launch not counted.

    `accumulate` adds to a float32 output; `sustained` is the speed inside a training run, not in
    a short burst; `cast_input` counts the kernel that first casts the (m, k) operand to `dtype`;
    `grouped` are products whose weights lie apart (the experts of a rank), which take
    `grouped_factor` times as long to compute.

    For a tile tm x tn, k split into S parts and SM compute units:
        w = batch ceil(m/tm) ceil(n/tn) S / SM
        waves = a ceil(w) + (1 - a) max(w, 1)
        t = waves (k/S + k0) 2 tm tn SM / (peak eff) tile_penalty + latency k/S
            + (split_start + S batch m n 8 / memory bandwidth where S > 1)
    The smallest t is slowed by 1 + throttle t / (t + throttle_time) in a burst, since clocks fall
    while a long kernel runs, or by (1 + throttle) sustained_factor, whatever its length, where
    GEMMs follow each other without end. It is joined with the time to move the operands by a
    4-norm; a fixed start is added. The constants are fitted mostly to m >= 256.

    Raises:
        UnsupportedError: the accelerator's data sheet gives no peak for `dtype`.

    Source: NVIDIA, "Matrix Multiplication Background User's Guide" (tiles and waves); Osama et
    al., "Stream-K", PPoPP 2023 (work spread evenly over a wave).
    """
    call = _Call(
        dtype=dtype,
        gpu=gpu,
        constants=constants,
        batch=batch,
        accumulate=accumulate,
        layout=layout,
        sustained=sustained,
        cast_input=cast_input,
        grouped=grouped,
    )
    return _seconds(m, n, k, call, min)


def gemm_seconds_of(
    shapes: Array,
    *,
    dtype: Dtype,
    gpu: Accelerator,
    constants: GemmConstants,
    accumulate: bool = False,
    layout: GemmLayout = GemmLayout.FORWARD,
    sustained: bool = False,
    cast_input: bool = False,
) -> Array:
    """Return `gemm_seconds` of each column of `shapes`, an array (3, count) of m, n and k."""
    call = _Call(
        dtype=dtype,
        gpu=gpu,
        constants=constants,
        accumulate=accumulate,
        layout=layout,
        sustained=sustained,
        cast_input=cast_input,
    )
    m, n, k = np.asarray(shapes, dtype=np.float64)
    return _seconds(m, n, k, call, lambda times: np.minimum.reduce(list(times)))


def peak_flops(gpu: Accelerator, dtype: Dtype) -> float:
    """Return the nominal dense FLOP/s of `dtype`.

    Raises:
        UnsupportedError: the data sheet gives none.
    """
    peak = gpu.peak.get(dtype)
    if peak is None:
        problem = Problem(
            where=gpu.name,
            key="peak",
            rule=f"{dtype.value} has no peak on this accelerator",
            fix=f"one of: {', '.join(gpu.peak)}",
        )
        raise UnsupportedError(problem)
    return float(peak)


def _seconds(
    m: Size, n: Size, k: Size, call: _Call, smallest: Callable[[Iterable[Size]], Size]
) -> Size:
    constants = call.constants
    busy = smallest(_candidates(m, n, k, call))
    if call.sustained:
        busy = busy * (1 + constants.throttle)
    else:
        busy = busy * (1 + constants.throttle * busy / (busy + constants.throttle_time))
    busy = busy * _compute_factor(call)
    bandwidth = call.gpu.memory_bandwidth * constants.memory_efficiency
    moving = _bytes_moved(m, n, k, call) / bandwidth
    seconds: Size = (busy**_NORM + moving**_NORM) ** (1 / _NORM) + constants.start
    if call.cast_input and constants.cast is not None:
        seconds = seconds + _cast_seconds(m * call.batch, k, constants.cast, call.gpu)
    return seconds


def _candidates(m: Size, n: Size, k: Size, call: _Call) -> Iterator[Size]:
    """Yield the compute seconds of each tile and split, before throttling.

    The innermost lines run for each of some thirty candidates: names are looked up outside.
    """
    constants, units, batch = call.constants, call.gpu.compute_units, call.batch
    whole, overhead = constants.wave_quantisation, constants.k_overhead
    even, latency = 1 - whole, constants.k_latency
    joining = batch * m * n * (_PARTIAL_BYTES / call.gpu.memory_bandwidth)
    splits = [(split, k / split, split > 1) for split in constants.splits]
    for (rows, columns), cost in _tile_costs(call):
        one = batch * -(-m // rows) * -(-n // columns) / units
        for split, depth, is_split in splits:
            waves = one * split
            counted = whole * -(-waves // 1) + even * (1 + (waves > 1) * (waves - 1))
            busy = counted * (depth + overhead) * cost + depth * latency
            yield busy + (constants.split_start + joining * split) if is_split else busy


def _tile_costs(call: _Call) -> list[tuple[tuple[int, int], float]]:
    """Return each tile with the seconds that one unit takes for it, an element of k."""
    constants = call.constants
    rate = peak_flops(call.gpu, call.dtype) * constants.efficiency / call.gpu.compute_units
    traffic = [1 / rows + 1 / columns for rows, columns in constants.tiles]
    least = min(traffic)
    penalties = [1 + constants.small_tile_penalty * (each / least - 1) for each in traffic]
    return [
        (tile, _FLOPS * tile[0] * tile[1] / rate * penalty)
        for tile, penalty in zip(constants.tiles, penalties, strict=True)
    ]


def _compute_factor(call: _Call) -> float:
    constants = call.constants
    factor = constants.layout_factor.get(call.layout, 1.0)
    if call.accumulate:
        factor *= constants.accumulate_factor
    if call.sustained:
        factor *= constants.sustained_factor
    if call.grouped:
        factor *= constants.grouped_factor
    return factor


def gemm_bytes(
    m: Size, n: Size, k: Size, *, dtype: Dtype, batch: int = 1, accumulate: bool = False
) -> Size:
    """Return the bytes of both operands, each read once, and of the output.

    With `accumulate` the output is a float32 gradient that is read, added to and written.
    """
    output = _ACCUMULATED_BYTES if accumulate else _OUTPUT_BYTES[dtype]
    return (dtype.bytes * (m * k + k * n) + output * m * n) * batch


def _bytes_moved(m: Size, n: Size, k: Size, call: _Call) -> Size:
    return gemm_bytes(m, n, k, dtype=call.dtype, batch=call.batch, accumulate=call.accumulate)


def _cast_seconds(rows: Size, k: Size, cast: CastConstants, gpu: Accelerator) -> Size:
    """Return the seconds of casting (rows, k): bound by rows where they are short, else by waves.

    cast = start + 4-norm(rows row, max(rows / (rows_in_flight SM), 1) k element)
    """
    waves = rows / (cast.rows_in_flight * gpu.compute_units)
    waves = 1 + (waves > 1) * (waves - 1)
    long, short = waves * k * cast.element, rows * cast.row
    seconds: Size = (long**_NORM + short**_NORM) ** (1 / _NORM) + cast.start
    return seconds
