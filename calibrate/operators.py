"""Memory-bound operators that can be measured: their class, and the bytes their kernels move.

Forecasts count what each kernel of a stack moves, so that an operator of several kernels counts
what lies between them too: its class would look slower than it is, and be counted twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import MemoryClass


class Operator(StrEnum):
    """A memory-bound operator; `calibrate.measure_memory` runs it."""

    ADD = "add"
    GELU = "gelu"
    SILU_MUL = "silu_mul"
    """The gate of SwiGLU: SiLU of one tensor times another, two kernels in eager PyTorch."""
    DROPOUT = "dropout"
    LAYER_NORM = "layer_norm"
    RMS_NORM = "rms_norm"
    SOFTMAX = "softmax"
    """Over the last dimension of a matrix of scores."""
    CROSS_ENTROPY = "cross_entropy"
    """Forward, over a vocabulary."""
    EMBEDDING = "embedding"
    """Look-up of rows in random order."""
    ADAMW = "adamw"
    """Update of parameters whose gradient and two states have the same format."""
    CAST = "cast"
    """From float32 to a 2-byte format."""
    TRANSPOSE = "transpose"
    """Copy of a matrix to its transpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What an operator moves: tensors of rows, and how often each element is read or written."""

    memory_class: MemoryClass
    width: int
    """Elements of a row; of the order that models have."""
    passes: float
    """Reads and writes of an element in the operator's number format."""
    more: float = 0.0
    """Bytes of an element beside them, of a fixed format."""
    dtype: Dtype | None = None
    """The one format in which it is measured; None is any."""


_HIDDEN, _SCORES, _VOCABULARY, _CHUNK = 4096, 2048, 32768, 2**16
_READ_WRITE, _TWO_IN_ONE_OUT = 2, 3
_GATE_PASSES = _READ_WRITE + _TWO_IN_ONE_OUT
"""Of the activation of the gate, then of its product with the other tensor."""
_ADAM_PASSES = 7
"""Parameter, gradient and two states are read; all but the gradient are written."""
_OTHER_FORMAT, _MASK = 2.0, 1.0
"""Bytes of a number that a cast writes, and of a dropout mask."""

TRAFFIC = {
    Operator.ADD: Traffic(
        memory_class=MemoryClass.POINTWISE, width=_HIDDEN, passes=_TWO_IN_ONE_OUT
    ),
    Operator.GELU: Traffic(memory_class=MemoryClass.POINTWISE, width=_HIDDEN, passes=_READ_WRITE),
    Operator.SILU_MUL: Traffic(
        memory_class=MemoryClass.POINTWISE, width=_HIDDEN, passes=_GATE_PASSES
    ),
    Operator.DROPOUT: Traffic(
        memory_class=MemoryClass.POINTWISE, width=_HIDDEN, passes=_READ_WRITE, more=_MASK
    ),
    Operator.LAYER_NORM: Traffic(memory_class=MemoryClass.NORM, width=_HIDDEN, passes=_READ_WRITE),
    Operator.RMS_NORM: Traffic(memory_class=MemoryClass.NORM, width=_HIDDEN, passes=_READ_WRITE),
    Operator.SOFTMAX: Traffic(memory_class=MemoryClass.SOFTMAX, width=_SCORES, passes=_READ_WRITE),
    # Log-softmax reads and writes all logits; the loss then reads one a row.
    Operator.CROSS_ENTROPY: Traffic(
        memory_class=MemoryClass.CROSS_ENTROPY, width=_VOCABULARY, passes=_READ_WRITE
    ),
    Operator.EMBEDDING: Traffic(
        memory_class=MemoryClass.EMBEDDING, width=_HIDDEN, passes=_READ_WRITE
    ),
    Operator.ADAMW: Traffic(
        memory_class=MemoryClass.OPTIMIZER, width=_CHUNK, passes=_ADAM_PASSES, dtype=Dtype.FP32
    ),
    Operator.CAST: Traffic(
        memory_class=MemoryClass.COPY, width=_HIDDEN, passes=1, more=_OTHER_FORMAT, dtype=Dtype.FP32
    ),
    Operator.TRANSPOSE: Traffic(memory_class=MemoryClass.COPY, width=_HIDDEN, passes=_READ_WRITE),
}


def row_bytes(operator: Operator, dtype: Dtype) -> float:
    """Return the bytes that the operator's kernels move for one row, each element once a kernel.

    >>> row_bytes(Operator.ADD, Dtype.BF16) == 3 * 2 * 4096
    True
    """
    traffic = TRAFFIC[operator]
    return traffic.width * (traffic.passes * dtype.bytes + traffic.more)


def whole_rows(operator: Operator, dtype: Dtype, moved: float) -> int:
    """Return the rows, at least one, for which it moves as near to `moved` bytes as it can."""
    return max(1, round(moved / row_bytes(operator, dtype)))
