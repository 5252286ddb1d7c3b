"""Pieces of a step on one rank, before anything is known about seconds."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import Axis
from simulator.workload.operator import Operator

ROUTER_CHOICE = "moe.router.choice"
"""Beginning of the names of the piece that chooses experts, one a mixture and pass."""


FP32_BYTES, MASK_BYTES = 4.0, 1.0
"""Of a number in fp32, and of an element of a dropout mask."""
ADD_PASSES = 3
"""A sum of two tensors reads both and writes one."""
UNFUSED_ROPE_PASSES = 3
"""Without a kernel of their own the splits, the rotation and the concatenation each move it."""


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
    algorithm: str | None = None
    """The collective algorithm; None is the library's own choice."""
    network_share: float = 1.0
    """Bytes that leave the scale-up domain over those of a plain all-to-all of `payload`: below 1
    where one copy of a token serves several experts of a domain."""
    buffer: float = 0.0
    """Bytes that it writes beside what the block keeps, alive until what it feeds has run."""


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
    def buffer(self) -> float:
        """Bytes of the largest buffer of its collectives."""
        return max((p.buffer for p in self.pieces if isinstance(p, CommWork)), default=0.0)

    @property
    def mixtures(self) -> int:
        """Mixtures of experts whose router runs in it, forward or backward."""
        return sum(piece.name.startswith(ROUTER_CHOICE) for piece in self.pieces)

    @property
    def model_flops(self) -> float:
        """FLOP of this rank as MFU counts them."""
        return sum(piece.model_flops for piece in self.pieces if not isinstance(piece, CommWork))

    @property
    def flops(self) -> float:
        """FLOP of this rank as the hardware runs them."""
        return sum(piece.flops for piece in self.pieces if not isinstance(piece, CommWork))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputation:
    """What one layer computes again, and what that frees."""

    again: tuple[Piece, ...]
    """In the order in which they run."""
    freed: float
    """Bytes of one micro-batch that are not kept."""
    transient: float
    """Bytes that are back at once while the backward pass runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassPair:
    """The forward and the backward pass over the same part of the model.

    `recompute` is what the backward pass computes again first; `kept` are the bytes of activations
    that one micro-batch holds between the two passes, `transient` those that exist only while the
    backward pass runs. `offloaded` bytes are not in `kept`: they wait in
    host memory.
    """

    forward: Block
    backward: Block
    recompute: Block
    kept: float
    transient: float
    offloaded: float = 0.0
