"""Operators as one rank runs them: the only place where FLOPs and bytes are counted.

Each record is one kernel shape (after sharding). `count` repeats it, `saved` is what the forward
pass keeps of it for the backward pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.hardware.kernel_constants import GemmLayout, MemoryClass

FLOPS_PER_SCORE = 4.0
"""Of each element of a head: a multiplication and an addition in QK^T, and again in PV."""
_FORWARD_PRODUCTS, _BACKWARD_PRODUCTS = 2, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """`batch` products of an (m, k) by a (k, n) matrix.

    >>> Gemm(name="fc1", m=2, n=3, k=4).flops
    48.0
    """

    name: str
    m: int
    n: int
    k: int
    batch: int = 1
    layout: GemmLayout = GemmLayout.FORWARD
    saved: float = 0.0
    count: int = 1

    @property
    def flops(self) -> float:
        """FLOP of all `count` runs: a multiply and an add a product."""
        return 2.0 * self.m * self.n * self.k * self.batch * self.count

    @property
    def model_flops(self) -> float:
        """FLOP as counted in MFU."""
        return self.flops


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    """One attention call on one rank: `heads` and `kv_heads` are local, sizes in tokens."""

    batch: int
    seq_q: int
    seq_k: int
    heads: int
    kv_heads: int
    head_dim: int
    causal: bool = True
    """The last query sees all keys; the one before it all but the last, and so on."""
    window: int | None = None
    """Keys that a query sees at most (sliding window); None for all."""

    @property
    def mean_keys(self) -> float:
        """Keys that a query sees, on average."""
        limit = min(self.window or self.seq_k, self.seq_k)
        if not self.causal:
            return float(limit)
        first = self.seq_k - self.seq_q
        growing = min(max(limit - first, 0), self.seq_q)
        rising = growing * (first + (growing + 1) / 2)
        return (rising + (self.seq_q - growing) * limit) / self.seq_q

    @property
    def flops(self) -> float:
        """FLOP of the forward pass under the mask."""
        scores = self.batch * self.heads * self.seq_q * self.mean_keys
        return FLOPS_PER_SCORE * self.head_dim * scores

    @property
    def unmasked_flops(self) -> float:
        """FLOP of the forward pass without a mask: QK^T and PV."""
        return FLOPS_PER_SCORE * self.head_dim * self.batch * self.heads * self.seq_q * self.seq_k


@dataclass(frozen=True, slots=True, kw_only=True)
class FlashAttention:
    """Fused attention of one `shape`, forward or backward."""

    name: str
    shape: AttentionShape
    backward: bool = False
    saved: float = 0.0
    count: int = 1

    @property
    def flops(self) -> float:
        """FLOP under the mask; the backward pass does five products where the forward does two."""
        passes = _BACKWARD_PRODUCTS / _FORWARD_PRODUCTS if self.backward else 1.0
        return self.shape.flops * self.count * passes

    @property
    def model_flops(self) -> float:
        """FLOP as counted in MFU by Megatron-LM: no mask, backward twice the forward."""
        return self.shape.unmasked_flops * self.count * (2.0 if self.backward else 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBound:
    """A kernel whose time is the bytes it moves; `launches` counts its kernels."""

    name: str
    bytes: float
    kind: MemoryClass
    launches: int = 1
    saved: float = 0.0
    count: int = 1

    @property
    def flops(self) -> float:
        """Zero: they do not count."""
        return 0.0

    @property
    def model_flops(self) -> float:
        """Zero: they do not count."""
        return 0.0


Operator = Gemm | FlashAttention | MemoryBound


def backward_gemms(gemm: Gemm) -> tuple[Gemm, Gemm]:
    """Return the input-gradient and weight-gradient GEMMs of a forward `gemm` (m, n, k).

    dX (m, k) = dY (m, n) W (n, k); dW (n, k) = dY^T (n, m) X (m, k).
    """
    input_gradient = Gemm(
        name=f"{gemm.name}.dgrad",
        m=gemm.m,
        n=gemm.k,
        k=gemm.n,
        batch=gemm.batch,
        layout=GemmLayout.INPUT_GRADIENT,
        count=gemm.count,
    )
    weight_gradient = Gemm(
        name=f"{gemm.name}.wgrad",
        m=gemm.n,
        n=gemm.k,
        k=gemm.m,
        batch=gemm.batch,
        layout=GemmLayout.WEIGHT_GRADIENT,
        count=gemm.count,
    )
    return input_gradient, weight_gradient
