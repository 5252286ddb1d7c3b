"""Operators as one rank runs them: the only place where FLOPs and bytes are counted.

Each record is one kernel shape (after sharding). `count` repeats it, `saved` is what the forward
pass keeps of it for the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

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
    grouped: bool = False
    """Whether the products have weights of their own, as the experts of a rank have."""
    model_share: float = 1.0
    """FLOP that MFU counts over those that run: below 1 where experts are padded or overloaded."""
    narrow: bool = False
    """Whether it runs in the job's precision where that is below 16 bits; bf16 otherwise."""

    @property
    def flops(self) -> float:
        """FLOP of all `count` runs: a multiply and an add a product."""
        return 2.0 * self.m * self.n * self.k * self.batch * self.count

    @property
    def model_flops(self) -> float:
        """FLOP as counted in MFU."""
        return self.flops * self.model_share


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    """One attention call on one rank: `heads` and `kv_heads` are local, sizes in tokens."""

    batch: int
    seq_q: int
    seq_k: int
    heads: int
    kv_heads: int
    head_dim: int
    """Channels of a query or key head, and of a value head unless `v_head_dim` says otherwise."""
    v_head_dim: int | None = None
    causal: bool = True
    """The last query sees all keys; the one before it all but the last, and so on."""
    window: int | None = None
    """Keys that a query sees at most (sliding window); None for all."""
    document: int | None = None
    """Keys of the documents packed into a sequence, which do not see each other; None for one."""
    chunk: int | None = None
    """Keys of the chunks of a document that do not see each other (Llama 4); None for one."""

    @property
    def mean_head_dim(self) -> float:
        """Channels of a head, the mean of those in QK^T and in PV."""
        return (self.head_dim + (self.v_head_dim or self.head_dim)) / 2

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """What the keys fall into: documents, cut into chunks; the last of each may be shorter."""
        cuts = [cut for cut in (self.document, self.chunk) if cut is not None]
        return tuple(_stretches(self.seq_k, cuts))

    @property
    def mean_keys(self) -> float:
        """Keys that a query sees, on average.

        >>> shape = AttentionShape(batch=1, seq_q=10, seq_k=10, heads=1, kv_heads=1, head_dim=8)
        >>> shape.mean_keys, replace(shape, document=5).mean_keys
        (5.5, 3.0)
        """
        seen = (s.repeats * self._seen_in(s.keys) for s in self.stretches)
        return sum(seen) / self.seq_q

    @property
    def flops(self) -> float:
        """FLOP of the forward pass under the mask."""
        scores = self.batch * self.heads * self.seq_q * self.mean_keys
        return FLOPS_PER_SCORE * self.mean_head_dim * scores

    @property
    def unmasked_flops(self) -> float:
        """FLOP of the forward pass without a mask: QK^T and PV of each document with itself.

        Packed documents are sequences of their own (Megatron-LM counts the sum of their squares);
        causal masks, windows and chunks are not taken off.
        """
        pairs = sum(s.repeats * s.keys**2 for s in replace(self, chunk=None).stretches)
        scores = float(self.batch * self.heads) * self.seq_q * pairs / self.seq_k
        return FLOPS_PER_SCORE * self.mean_head_dim * scores

    def queries_in(self, keys: int) -> float:
        """Return the queries of a stretch of `keys` keys: the same share in all stretches."""
        return keys * self.seq_q / self.seq_k

    def _seen_in(self, keys: int) -> float:
        """Return the keys that all queries of one stretch see, summed.

        With a causal mask query i of q (counted from 1) sees the first keys - q + i, of which the
        window leaves the last.
        """
        queries = self.queries_in(keys)
        limit = min(self.window or keys, keys)
        if not self.causal:
            return queries * limit
        first = keys - queries
        growing = min(max(limit - first, 0.0), queries)
        return growing * (first + (growing + 1) / 2) + (queries - growing) * limit


class Stretch(NamedTuple):
    """Consecutive keys that only their own queries see, and how many such stretches there are."""

    keys: int
    repeats: int


def _stretches(length: int, cuts: Sequence[int]) -> Iterator[Stretch]:
    """Cut `length` keys by the first of `cuts`, and each part by the others.

    >>> list(_stretches(20, [8, 6]))
    [Stretch(keys=6, repeats=2), Stretch(keys=2, repeats=2), Stretch(keys=4, repeats=1)]
    """
    if not cuts:
        yield Stretch(keys=length, repeats=1)
        return
    whole, rest = divmod(length, cuts[0])
    if whole:
        for part in _stretches(cuts[0], cuts[1:]):
            yield Stretch(keys=part.keys, repeats=part.repeats * whole)
    if rest:
        yield from _stretches(rest, cuts[1:])


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
        """FLOP as counted in MFU: no causal mask, backward twice the forward."""
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
    eager: bool = False
    """Whether a general kernel of the framework runs it: strided, of mixed dtypes, not tuned."""

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
        narrow=gemm.narrow,
        count=gemm.count,
    )
    weight_gradient = Gemm(
        name=f"{gemm.name}.wgrad",
        m=gemm.n,
        n=gemm.k,
        k=gemm.m,
        batch=gemm.batch,
        layout=GemmLayout.WEIGHT_GRADIENT,
        narrow=gemm.narrow,
        count=gemm.count,
    )
    return input_gradient, weight_gradient
