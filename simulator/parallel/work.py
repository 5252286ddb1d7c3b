"""Pieces of a step on one rank, before anything is known about seconds."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import Axis
from simulator.workload.operator import Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class CommWork:
    """One collective of `payload` bytes (nccl-tests convention) over `group`.

    The operators named in `hidden_by` (of the same block) run at the same time. `hidden_fraction`
    of what they could hide, which is the shorter of the two times, costs nothing.
    """

    name: str
    collective: Collective
    payload: float
    axis: Axis
    group: GroupShape
    hidden_by: tuple[str, ...] = ()
    hidden_fraction: float = 0.0
    count: int = 1


Piece = Operator | CommWork


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Pieces that a rank runs one after another: one pass over one layer, say."""

    name: str
    pieces: tuple[Piece, ...]

    @property
    def saved(self) -> float:
        """Bytes that the pass keeps for the backward pass."""
        return sum(piece.saved for piece in self.pieces if not isinstance(piece, CommWork))

    @property
    def model_flops(self) -> float:
        """FLOP of this rank as MFU counts them."""
        return sum(piece.model_flops for piece in self.pieces if not isinstance(piece, CommWork))

    @property
    def flops(self) -> float:
        """FLOP of this rank as the hardware runs them."""
        return sum(piece.flops for piece in self.pieces if not isinstance(piece, CommWork))


@dataclass(frozen=True, slots=True, kw_only=True)
class PassPair:
    """The forward and the backward pass over the same part of the model.

    `recompute` is what the backward pass computes again first; `kept` are the bytes of activations
    that one micro-batch holds between the two passes, `transient` those that exist only while the
    backward pass runs.
    """

    forward: Block
    backward: Block
    recompute: Block
    kept: float
    transient: float
