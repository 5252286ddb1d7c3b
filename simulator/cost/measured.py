"""Parts of a model that were timed on this machine: their compute takes the measured seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from simulator.cost.blocks import BlockCost, PieceCost
from simulator.hardware.accelerator import Dtype
from simulator.hardware.software_constants import MeasuredPart, MeasuredPass, SoftwareConstants
from simulator.parallel.program import PassProgram
from simulator.parallel.segments import LayerWork
from simulator.results import Category
from simulator.workload.attention_blocks import AttentionSpec
from simulator.workload.mlp_blocks import MlpSpec

_COMPUTE = frozenset({Category.GEMM, Category.ATTENTION, Category.MEMORY_BOUND, Category.LAUNCH})


class _Key(NamedTuple):
    """What a measured pass must have in common with a part, besides the precision."""

    part: MeasuredPart
    hidden_size: int
    width: int
    heads: int
    kv_heads: int
    gated: bool
    micro_batch: int
    seq: int
    tp: int


class MeasuredTimes:
    """The measured passes of one machine and precision, by what they are of."""

    def __init__(self, software: SoftwareConstants | None, precision: Dtype) -> None:
        passes = software.passes if software is not None else ()
        scale = software.step_scale if software is not None else 1.0
        self._found = {_key_of(p): _scaled(p, scale) for p in passes if p.precision is precision}

    def find(self, program: PassProgram, part: LayerWork | str) -> MeasuredPass | None:
        """Return the measured pass over a layer, the "embedding" or the "head"; None for none."""
        if not self._found or program.layout.cp > 1 or program.layout.sequence_parallel:
            return None
        key = _wanted(program, part)
        return None if key is None else self._found.get(key)


def with_compute(cost: BlockCost, seconds: float) -> BlockCost:
    """Return a block whose compute takes `seconds`; its collectives stay as they are."""
    compute = compute_of(cost)
    if not compute:
        return cost
    factor = seconds / compute
    by_category = {c: s * factor if c in _COMPUTE else s for c, s in cost.by_category.items()}
    return BlockCost(
        seconds=sum(by_category.values()),
        by_category=by_category,
        lay_out=lambda: _stretched(cost.pieces, factor),
    )


def compute_of(cost: BlockCost) -> float:
    """Return the seconds of a block's compute."""
    return sum(cost.by_category.get(category, 0.0) for category in _COMPUTE)


def in_proportion(parts: Sequence[BlockCost], seconds: float) -> list[BlockCost]:
    """Return blocks whose compute together takes `seconds`, each its share of it."""
    whole = sum(map(compute_of, parts))
    return [with_compute(part, seconds * compute_of(part) / whole) for part in parts]


def _stretched(pieces: Iterable[PieceCost], factor: float) -> Iterable[PieceCost]:
    """Yield the pieces with longer or shorter compute, each moved by those in front of it."""
    moved = 0.0
    for piece in pieces:
        own = factor if piece.category in _COMPUTE else 1.0
        yield piece._replace(
            offset=max(0.0, piece.offset + moved),
            seconds=piece.seconds * own,
            exposed=piece.exposed * own,
        )
        moved += piece.exposed * (own - 1.0)


def _scaled(measured: MeasuredPass, scale: float) -> MeasuredPass:
    """Return a pass as it is within a training run."""
    times = {"forward": measured.forward * scale, "backward": measured.backward * scale}
    return measured.model_copy(update=times)


def _key_of(measured: MeasuredPass) -> _Key:
    return _Key(*(getattr(measured, name) for name in _Key._fields))


def _wanted(program: PassProgram, part: LayerWork | str) -> _Key | None:
    shard, model = program.shard, program.model
    common = {"micro_batch": shard.micro_batch, "seq": shard.seq, "tp": shard.tp}
    if isinstance(part, str):
        if part not in (MeasuredPart.EMBEDDING, MeasuredPart.HEAD):
            return None
        return _Key(
            part=MeasuredPart(part),
            hidden_size=model.hidden_size,
            width=model.vocab_size,
            heads=0,
            kv_heads=0,
            gated=False,
            **common,
        )
    attention, mlp = part.layer.attention, part.layer.mlp
    if not isinstance(attention, AttentionSpec) or not isinstance(mlp, MlpSpec):
        return None
    return _Key(
        part=MeasuredPart.LAYER,
        hidden_size=part.layer.hidden_size,
        width=mlp.intermediate_size,
        heads=attention.num_attention_heads,
        kv_heads=attention.num_key_value_heads,
        gated=mlp.gated,
        **common,
    )
