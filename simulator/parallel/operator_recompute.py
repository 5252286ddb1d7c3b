"""Selective recomputation by operator, as torchtitan does it.

Of a layer only its input and the results of some operators are kept: of attention, of
reduce-scatters, and of every second matrix product, in the order in which they run (query, key,
value, output; gate, up, down). All else is computed again, but for what no backward pass asks for:
the layer's last product, and one whose scattered result is kept (the layers are compiled, which
drops both). Here one product makes query, key and value, and one gate and up, so that a part of it
runs again.

Source: torchtitan torchtitan/distributed/activation_checkpoint.py (`selective_ac_option = "op"`:
`_op_sac_save_list`, `_get_custom_policy`); PyTorch torch/_functorch/partitioners.py (saves only
what the backward graph reads).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from simulator.parallel.attention import attention_core
from simulator.parallel.groups import Collective
from simulator.parallel.shard import Shard
from simulator.parallel.work import CommWork, Piece, Recomputation
from simulator.workload.layer import AttentionSpec, LayerSpec, LinearSpec, MlpSpec
from simulator.workload.operator import Gemm

_QKV, _PROJ, _UP = "attention.qkv", "attention.proj", "mlp.up"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Product:
    """One matrix product as the framework runs it, before it is merged with its neighbours."""

    name: str
    """Of the piece that it is a part of."""
    width: int
    """Channels that one rank writes."""
    kept: bool
    inner: bool
    """Whether its result is also what the layer would keep without recomputation."""


def by_operator(
    layer: LayerSpec, shard: Shard, pieces: Sequence[Piece], core: Sequence[Piece]
) -> Recomputation:
    """Return what is computed again of a forward pass of `pieces`, of which `core` is attention."""
    products = list(_products(layer, shard))
    size = shard.element * shard.tokens
    once = shard.element * shard.residual_tokens * layer.hidden_size
    shared = once + _attention_results(layer, shard, core)
    shared += sum(size * product.width for product in products if product.kept and product.inner)
    scattered = sum(_scatters(piece) for piece in pieces)
    kept = shared + once * max(0, scattered - 1)
    own = [product for product in products[:-1] if product.kept and not product.inner]
    kept += sum(size * product.width for product in own)
    saved = sum(piece.saved for piece in pieces if not isinstance(piece, CommWork))
    skipped = {piece.name for piece in core} | {product.name for product in products[-1:]}
    skipped |= {_PROJ} if scattered else set()
    return Recomputation(
        again=tuple(_again(pieces, products, skipped)),
        freed=saved - kept,
        transient=max(0.0, saved - shared),
    )


def _products(layer: LayerSpec, shard: Shard) -> Iterator[_Product]:
    widths = [*_attention_widths(layer, shard), *_mlp_widths(layer, shard)]
    for number, (name, width, inner) in enumerate(widths):
        yield _Product(name=name, width=width, kept=number % 2 == 0, inner=inner)


def _attention_widths(layer: LayerSpec, shard: Shard) -> list[tuple[str, int, bool]]:
    """The query is kept before its rotation, which the layer alone would not do."""
    match layer.attention:
        case AttentionSpec() as attention:
            core = attention_core(attention, shard.tp)
            return [
                (_QKV, core.query_width, False),
                (_QKV, core.key_width, False),
                (_QKV, core.value_width, True),
                (_PROJ, layer.hidden_size, False),
            ]
        case LinearSpec() as linear:
            return [("attention.linear", linear.hidden_size // shard.tp, False)]
        case _:
            return []


def _mlp_widths(layer: LayerSpec, shard: Shard) -> list[tuple[str, int, bool]]:
    match layer.mlp:
        case MlpSpec() as mlp:
            width = mlp.intermediate_size // shard.tp
            up = [(_UP, width, True)] * (1 + mlp.gated)
            return [*up, ("mlp.down", layer.hidden_size, False)]
        case LinearSpec() as linear:
            return [("mlp.linear", linear.hidden_size // shard.tp, False)]
        case _:
            return []


def _attention_results(layer: LayerSpec, shard: Shard, core: Sequence[Piece]) -> float:
    """Bytes of the attention's result, and of what its kernels keep beside their three inputs."""
    if not isinstance(layer.attention, AttentionSpec):
        return 0.0
    heads = attention_core(layer.attention, shard.tp)
    inputs = heads.query_width + heads.key_width + heads.value_width
    saved = sum(piece.saved for piece in core if not isinstance(piece, CommWork))
    return saved + shard.element * shard.tokens * (heads.output_width - inputs)


def _again(
    pieces: Sequence[Piece], products: Sequence[_Product], skipped: set[str]
) -> Iterator[Piece]:
    """Yield what runs again; nothing waits for the residual at the end of the layer."""
    widths = {
        name: sum(p.width for p in products if p.name == name and not p.kept)
        for name in {product.name for product in products}
    }
    for piece in pieces[:-1]:
        if piece.name in skipped or _scatters(piece):
            continue
        if isinstance(piece, Gemm) and piece.name in widths:
            if widths[piece.name]:
                yield replace(piece, n=widths[piece.name], saved=0.0)
        else:
            yield piece


def _scatters(piece: Piece) -> bool:
    return isinstance(piece, CommWork) and piece.collective is Collective.REDUCE_SCATTER
