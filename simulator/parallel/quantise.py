"""Casts of a linear layer's tensors to 8 or 4 bits: what is read, written, kept and sent.

e bytes an element in 16 bits, b in a narrow copy with its scales. The forward product reads an
input and a weight, the input gradient an output gradient and the weight, the weight gradient the
input and the output gradient once more along their other dimension: a second copy where scales
differ along columns, a transposed one where the GEMMs take no other layout. A pass that makes both
copies reads its tensor once; a scale of a whole tensor needs one more read for the maximum.

With sequence parallelism a tensor that tp gathers is cast before: each rank casts tokens / tp, and
transposes what it has gathered. Source: Transformer Engine 2.x pytorch/module/layernorm_linear.py
and linear.py; `simulator.workload.recipes` has each recipe's.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.groups import Collective
from simulator.parallel.shard import Shard
from simulator.parallel.weights import Linear, Split
from simulator.parallel.work import FP32_BYTES, CommWork, Piece
from simulator.workload.operator import MemoryBound
from simulator.workload.recipes import Maximum, Scaling


def scaling_of(linear: Linear, shard: Shard) -> Scaling | None:
    """Return how a layer is scaled; None where it does not run narrow."""
    return shard.scaling if linear.narrow else None


def kept_element(linear: Linear, shard: Shard) -> float:
    """Return the bytes that stay of each element of the input for the weight gradient."""
    scaling = scaling_of(linear, shard)
    return shard.element if scaling is None or scaling.keeps_wide else scaling.element


def gathered_input_element(shard: Shard, *, narrow: bool, adapted: bool) -> float:
    """Return the bytes of an element of the input that sequence parallelism gathers.

    An adapter reads the input in 16 bits, which is then gathered so, and cast behind it.
    """
    scaling = shard.scaling
    if scaling is None or not narrow or adapted or not scaling.gathers:
        return shard.element
    return scaling.element


def gathered_gradient_element(shard: Shard, *, trained: bool) -> float:
    """Return the bytes of an element of the output gradient that sequence parallelism gathers.

    Copies scaled along rows and along columns are both sent: neither follows from the other.
    Source: Transformer Engine 2.x pytorch/distributed.py, gathers of MXFP8 and NVFP4 tensors.
    """
    scaling = shard.scaling
    if scaling is None or not scaling.gathers:
        return shard.element
    return scaling.element * (2 if scaling.columns and trained else 1)


def forward_casts(linear: Linear, shard: Shard) -> list[Piece]:
    """Return what is cast, and which maxima are shared, before the forward product."""
    scaling = scaling_of(linear, shard)
    if scaling is None:
        return []
    gathered = _gathers_input(linear, shard, scaling)
    pieces: list[Piece] = []
    if gathered and scaling.maximum is Maximum.TENSOR:
        pieces.append(_shared_maximum(f"{linear.name}.amax", shard))
    pieces += _input_cast(linear, shard, scaling, gathered=gathered)
    if shard.casts_weights:
        pieces.append(_weight_cast(f"{linear.name}.weight.cast", linear, shard, scaling))
    return pieces


def backward_casts(linear: Linear, shard: Shard) -> list[Piece]:
    """Return what is cast before the two backward products.

    Casts that only the weight gradient needs are named `<linear>.wgrad.*`.
    """
    scaling = scaling_of(linear, shard)
    if scaling is None:
        return []
    trained = shard.job.trains(linear.part)
    gathered = _gathers_gradient(linear, shard, scaling)
    pieces: list[Piece] = []
    if gathered and scaling.maximum is Maximum.TENSOR:
        pieces.append(_shared_maximum(f"{linear.name}.grad.amax", shard))
    pieces.append(_gradient_cast(linear, shard, scaling, gathered=gathered))
    if shard.casts_weights:
        pieces.append(_weight_cast(f"{linear.name}.dgrad.weight.cast", linear, shard, scaling))
    if trained:
        pieces += _weight_gradient_casts(linear, shard, scaling, gradient_gathered=gathered)
    return pieces


def _gathers_input(linear: Linear, shard: Shard, scaling: Scaling) -> bool:
    cut = shard.sequence_parallel and linear.split is Split.COLUMN
    return cut and scaling.gathers and not has_adapter(linear, shard)


def _gathers_gradient(linear: Linear, shard: Shard, scaling: Scaling) -> bool:
    return shard.sequence_parallel and linear.split is Split.ROW and scaling.gathers


def has_adapter(linear: Linear, shard: Shard) -> bool:
    """Return whether a layer has a low-rank adapter beside it."""
    lora = shard.job.lora
    return lora is not None and linear.target in lora.targets


def _input_cast(
    linear: Linear, shard: Shard, scaling: Scaling, *, gathered: bool
) -> list[MemoryBound]:
    """Return the cast of the input, less what the norm in front of the layer writes itself.

    That norm is still counted as writing e bytes an element, of which it saves e - b.
    """
    elements = float(linear.tokens * linear.k * linear.batch) / (shard.tp if gathered else 1)
    transposed = shard.transposes and not gathered
    needs_columns = shard.job.trains(linear.part) and not scaling.keeps_wide
    columns = needs_columns and (scaling.columns or transposed)
    if scaling.norm_casts and linear.split is Split.COLUMN and not has_adapter(linear, shard):
        moved = 2 * scaling.element if columns else 0.0
        launches = 1
    else:
        moved = _reads(shard, scaling) + scaling.element * (1 + columns)
        launches = 1 + scaling.searches
    if not moved:
        return []
    return [_cast(f"{linear.name}.cast", moved * elements, launches, linear)]


def _gradient_cast(
    linear: Linear, shard: Shard, scaling: Scaling, *, gathered: bool
) -> MemoryBound:
    elements = float(linear.tokens * linear.n * linear.batch) / (shard.tp if gathered else 1)
    transposed = shard.transposes and not gathered
    columns = shard.job.trains(linear.part) and (scaling.columns or transposed)
    moved = _reads(shard, scaling) + scaling.element * (1 + columns)
    return _cast(f"{linear.name}.dgrad.cast", moved * elements, 1 + scaling.searches, linear)


def _weight_gradient_casts(
    linear: Linear, shard: Shard, scaling: Scaling, *, gradient_gathered: bool
) -> list[MemoryBound]:
    """Return casts and transposes that only the weight gradient needs."""
    inputs = float(linear.tokens * linear.k * linear.batch)
    gradients = float(linear.tokens * linear.n * linear.batch)
    name, transpose = f"{linear.name}.wgrad.cast", 2 * scaling.element
    if scaling.keeps_wide:
        # A scale a column: its maximum over all tokens is found before the cast.
        moved = (2 * shard.element + scaling.element) * inputs
        return [_cast(f"{name}.input", moved, 2, linear)]
    pieces = []
    if shard.transposes and not scaling.columns:
        if _gathers_input(linear, shard, scaling):
            pieces.append(_cast(f"{name}.input", transpose * inputs, 1, linear))
        if gradient_gathered:
            pieces.append(_cast(f"{name}.gradient", transpose * gradients, 1, linear))
    return pieces


def _weight_cast(name: str, linear: Linear, shard: Shard, scaling: Scaling) -> MemoryBound:
    """Return the cast of a weight for one product of one pass."""
    moved = (_reads(shard, scaling) + scaling.weight) * linear.parameters
    return _cast(name, moved, 1 + scaling.searches, linear)


def _reads(shard: Shard, scaling: Scaling) -> float:
    """Return the bytes read of an element to cast it: twice where its maximum is found first."""
    return shard.element * (1 + scaling.searches)


def _shared_maximum(name: str, shard: Shard) -> CommWork:
    one = shard.tensor_comm(name, Collective.ALL_REDUCE, 1, ())
    return replace(one, payload=FP32_BYTES)


def _cast(name: str, moved: float, launches: int, linear: Linear) -> MemoryBound:
    """Return the cast of `moved` bytes in all: for experts side by side, kernels for each."""
    each, kind = moved / linear.batch, MemoryClass.COPY
    return MemoryBound(name=name, bytes=each, kind=kind, launches=launches, count=linear.batch)
