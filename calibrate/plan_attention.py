"""The attention calls of a plan: the model's own, and shapes spread over sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from calibrate.plan_case import Case, model_pieces
from calibrate.plan_file import AttentionPlan
from calibrate.points import AttentionPoint
from calibrate.spread import spread_points
from simulator.hardware.accelerator import Dtype
from simulator.workload.operator import AttentionShape, FlashAttention

_WIDEST = 4.0
"""Bytes of the widest element, float32."""
_TENSORS = 8
"""Queries, keys, values and output, and the gradient of each."""
_DRAWS = 50
"""Tries for one spread shape."""


def model_attention(case: Case) -> Iterator[AttentionPoint]:
    """Yield the attention of the model's layers, full and causal, forward and backward.

    Fused kernels of PyTorch know no windows and want values as wide as keys: a layer with a window
    stands for the full attention of its heads, latent attention is left out.
    """
    section = case.plan.attention
    if section is None or not section.model:
        return
    shapes = [
        piece.shape
        for piece in model_pieces(case)
        if isinstance(piece, FlashAttention) and piece.shape.v_head_dim is None
    ]
    for dtype in case.dtypes(section.dtypes):
        for shape in shapes:
            yield from _passes(shape, dtype, case, section)


def spread_attention(case: Case) -> Iterator[AttentionPoint]:
    """Yield causal attention over sequence lengths, heads and their widths."""
    section = case.plan.attention
    if section is None:
        return
    for dtype in case.dtypes(section.dtypes):
        draws = islice(spread_points(5), _DRAWS * section.spread)
        drawn = (_drawn(shares, section) for shares in draws)
        for shape in islice((s for s in drawn if _fits(case, s)), section.spread):
            yield from _passes(shape, dtype, case, section)


def _passes(
    shape: AttentionShape, dtype: Dtype, case: Case, section: AttentionPlan
) -> Iterator[AttentionPoint]:
    if not _fits(case, shape):
        return
    forward = AttentionPoint(
        dtype=dtype,
        batch=shape.batch,
        seq=shape.seq_q,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
    )
    yield forward
    if section.backward:
        yield forward.model_copy(update={"backward": True})


def _drawn(shares: tuple[float, ...], section: AttentionPlan) -> AttentionShape:
    batch, seq, heads, group, head_dim = (
        _pick(choices, share)
        for choices, share in zip(
            (section.batch, section.seq, section.heads, section.group, section.head_dim),
            shares,
            strict=True,
        )
    )
    return AttentionShape(
        batch=batch,
        seq_q=seq,
        seq_k=seq,
        heads=heads,
        kv_heads=max(1, heads // group),
        head_dim=head_dim,
    )


def _pick(choices: Sequence[int], share: float) -> int:
    return choices[int(share * len(choices))]


def _fits(case: Case, shape: AttentionShape) -> bool:
    """Return whether both passes run in time and their tensors have room."""
    backward = FlashAttention(name="attention", shape=shape, backward=True).flops
    elements = _TENSORS * shape.batch * shape.seq_q * shape.heads * shape.head_dim
    return backward <= case.most_flops and _WIDEST * elements <= case.room
