"""Activations that wait in host memory between a layer's forward and backward pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import Axis
from simulator.parallel.work import Block, CommWork, PassPair

STAGED_LAYERS = 2
"""Offloaded layers whose activations are on the device at once: one in each of two buffers."""


def offloaded(passes: PassPair, window: int = 1) -> PassPair:
    """Return the passes over a layer whose kept bytes go to host memory and come back.

    The copies of N layers of L are spread over all: a copy engine has the time of `window` layers,
    L/N rounded down or up, for each, in both passes. Layers are taken for alike, so that a copy
    hides behind `window` times the operators of its own block, and makes it longer by
    max(0, copy - window x operators).

    Source: Transformer Engine 1.x-2.x pytorch/cpu_offload.py
    (`AsyncDoubleBufferGroupOffloadHandler.layer_window_map`).
    """
    return replace(
        passes,
        forward=_with_copy(passes.forward, "layer.offload", passes.kept, window),
        backward=_with_copy(passes.backward, "layer.reload", passes.kept, window),
        kept=0.0,
        offloaded=passes.kept,
    )


def staged_bytes(layers: Iterable[tuple[float, int]]) -> float:
    """Return the bytes on the device of offloaded layers, given as (bytes, how many such layers).

    >>> staged_bytes([(10.0, 1), (8.0, 5), (0.0, 3)])
    18.0
    """
    each = (size for size, count in layers for _ in range(min(count, STAGED_LAYERS)))
    return sum(sorted(each, reverse=True)[:STAGED_LAYERS])


def _with_copy(block: Block, name: str, size: float, window: int) -> Block:
    if not size:
        return block
    operators = tuple(piece.name for piece in block.pieces if not isinstance(piece, CommWork))
    copy = CommWork(
        name=name,
        collective=Collective.HOST_COPY,
        payload=size,
        axis=Axis.HOST,
        group=GroupShape(size=1, per_domain=1),
        hidden_by=operators * window,
        hidden_fraction=1.0,
    )
    return replace(block, pieces=(*block.pieces, copy))
