"""A backward pass in two: gradients of the input, and of the weights, which nobody waits for.

Source: Qi et al. 2024 (arXiv:2401.10241), sections 1 and 3; its Megatron-LM fork stores the input
(gathered, with sequence parallelism) and the output's gradient of each linear layer.
"""

from __future__ import annotations

from simulator.hardware.kernel_constants import GemmLayout
from simulator.parallel.shard import Shard
from simulator.parallel.work import Block, PassPair, Piece
from simulator.workload.operator import Gemm, MemoryBound

_OF_WEIGHTS = (".accumulate", ".bias.grad")
_WGRAD, _REGATHER = ".wgrad", ".regather"
_OF_WGRAD = f"{_WGRAD}."
"""Casts that only a weight gradient needs."""


def split_backward(backward: Block) -> tuple[Block, Block]:
    """Return the input-gradient and the weight-gradient part of a backward block.

    A linear layer's weight gradient, the casts that it alone needs, its accumulation and its bias
    gradient are put off; attention, norms, the embedding's scatter and all collectives are not. A
    collective that hid behind a weight gradient then has nothing to hide behind.

    >>> from simulator.workload.operator import backward_gemms
    >>> pieces = backward_gemms(Gemm(name="fc1", m=2, n=3, k=4))
    >>> [b.pieces[0].name for b in split_backward(Block(name="layer", pieces=pieces))]
    ['fc1.dgrad', 'fc1.wgrad']
    """
    put_off = tuple(piece for piece in backward.pieces if _is_of_weights(piece))
    rest = tuple(piece for piece in backward.pieces if not _is_of_weights(piece))
    return (
        Block(name=f"{backward.name}.input", pieces=rest),
        Block(name=f"{backward.name}.weight", pieces=put_off),
    )


def kept_for_weights(passes: PassPair, shard: Shard) -> float:
    """Return the bytes that stay until the weight gradients are computed, where those are put off.

    For each weight gradient (m out, n in, k tokens): the input that the forward pass kept, or all
    k tokens of it where it has been gathered again, and k x m gradients of the output. What an
    8-bit product reads stays in 8 bits. A GPT layer of width h keeps 2 (h + h + h + 4h) bytes a
    token of inputs and 2 (3h + h + 4h + h) of gradients: 32 h, as in table 1 of Qi et al. 2024.
    """
    kept = {piece.name: piece.saved for piece in passes.forward.pieces if isinstance(piece, Gemm)}
    gathered = {piece.name.removesuffix(_REGATHER) for piece in passes.backward.pieces}
    total = 0.0
    for gemm in passes.backward.pieces:
        if isinstance(gemm, Gemm) and gemm.layout is GemmLayout.WEIGHT_GRADIENT:
            name, columns = gemm.name.removesuffix(_WGRAD), gemm.k * gemm.batch * gemm.count
            element = _read_element(gemm, shard)
            again = name in gathered
            total += element * columns * gemm.n if again else kept.get(name, 0.0)
            total += element * columns * gemm.m
    return total


def _read_element(gemm: Gemm, shard: Shard) -> float:
    """Return the bytes of an element that a weight gradient reads, scales included."""
    scaling = shard.scaling if gemm.narrow else None
    return shard.element if scaling is None or scaling.keeps_wide else scaling.element


def _is_of_weights(piece: Piece) -> bool:
    match piece:
        case Gemm():
            return piece.layout is GemmLayout.WEIGHT_GRADIENT
        case MemoryBound():
            return piece.name.endswith(_OF_WEIGHTS) or _OF_WGRAD in piece.name
        case _:
            return False
