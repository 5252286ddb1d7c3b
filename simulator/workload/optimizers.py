"""What each optimizer keeps for a parameter and moves in its update."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.workload.job import Optimizer

_BLOCK = 256
"""Elements that share a scale in 8-bit states: bitsandbytes 0.44 optim/optimizer.py (blockwise),
torchao optim/adam.py."""
_BYTE, _FP32 = 1.0, 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRule:
    """States of an optimizer, in numbers a parameter."""

    matrix: int
    """Of a weight matrix of a layer."""
    other: int
    """Of embedding, head, norms and biases."""
    factored: bool = False
    """Whether a matrix has a number a row and a number a column besides."""
    own_bytes: float | None = None
    """Of one state where the optimizer's format is fixed; None is the stack's, or the job's."""
    gradient_reads: int = 1
    """Times the update reads the gradient."""
    orthogonalises: bool = False
    """Whether the momentum of a matrix is orthogonalised."""


STATE_RULES: dict[Optimizer, StateRule] = {
    Optimizer.ADAM: StateRule(matrix=2, other=2),
    # Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization", section 2.
    Optimizer.ADAM_8BIT: StateRule(matrix=2, other=2, own_bytes=_BYTE + _FP32 / _BLOCK),
    # Jordan et al. 2024, "Muon", github.com/KellerJordan/Muon: Adam for all that is no hidden
    # matrix.
    Optimizer.MUON: StateRule(matrix=1, other=2, orthogonalises=True),
    # Shazeer and Stern 2018, algorithm 4: vectors keep a whole second moment; the gradient is read
    # for the row and column means, for the norm of the update, and for the update.
    Optimizer.ADAFACTOR: StateRule(matrix=0, other=1, factored=True, gradient_reads=3),
    Optimizer.SGD_MOMENTUM: StateRule(matrix=1, other=1),
    Optimizer.SGD: StateRule(matrix=0, other=0),
}

NEWTON_SCHULZ_STEPS = 5
"""Jordan et al. 2024, "Muon", zeropower_via_newtonschulz5."""
