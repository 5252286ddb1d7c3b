"""The shared experts of a mixture: a dense MLP, tensor parallel, that every token meets.

Source: Megatron-LM core/transformer/moe/shared_experts.py.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.groups import Collective
from simulator.parallel.linear import Linear, linear_backward, linear_forward
from simulator.parallel.mlp import activation
from simulator.parallel.quantise import gathered_gradient_element
from simulator.parallel.residual import open_branch_backward, open_branch_forward
from simulator.parallel.shard import Shard
from simulator.parallel.work import CommWork, Piece
from simulator.workload.job import LoraTarget, Part
from simulator.workload.layer import MoeSpec
from simulator.workload.operator import MemoryBound

_GATE_PASSES, _GATE_BACKWARD_PASSES = 3, 5
"""Product with the gate's vector (read), scaling (read, write); backward the output and its
gradient for the gate (read, read), scaling (read, write), the input again (read)."""


def shared_forward(moe: MoeSpec, shard: Shard) -> list[Piece]:
    """Return up (and gate), activation, down, and the learned gate of the output.

    The input is the router's, and kept there; where the stack keeps what is gathered, that is
    kept here.
    """
    if not moe.shared_intermediate_size:
        return []
    up, down = _linears(moe, shard)
    hidden = moe.hidden_size
    name = "moe.shared.activation"
    pieces = [
        *open_branch_forward(up.name, hidden, shard),
        *linear_forward(up, shard),
        activation(name, moe, float(shard.tokens * down.k), shard, backward=False),
        *linear_forward(down, shard),
    ]
    if shard.tp > 1:
        pieces.append(shard.tensor_comm(f"{down.name}.reduce", _closing(shard), hidden, _by(down)))
    return _alone([*pieces, *_gate(moe, shard, backward=False)], shard)


def shared_backward(moe: MoeSpec, shard: Shard) -> list[Piece]:
    """Return the backward pass of `shared_forward`."""
    if not moe.shared_intermediate_size:
        return []
    up, down = _linears(moe, shard)
    pieces = _gate(moe, shard, backward=True)
    if shard.sequence_parallel:
        beside = (f"{down.name}.dgrad",)
        gather = Collective.ALL_GATHER
        element = gathered_gradient_element(shard, trained=shard.job.trains(Part.MLP))
        pieces.append(
            shard.tensor_comm(f"{down.name}.gather_grad", gather, moe.hidden_size, beside, element)
        )
    name = "moe.shared.activation.backward"
    pieces += [
        *linear_backward(down, shard),
        activation(name, moe, float(shard.tokens * down.k), shard, backward=True),
        *open_branch_backward(up.name, moe.hidden_size, shard, linear_backward(up, shard)),
    ]
    return _alone(pieces, shard)


def _linears(moe: MoeSpec, shard: Shard) -> tuple[Linear, Linear]:
    width = moe.shared_intermediate_size // shard.tp
    up = Linear(
        name="moe.shared.up",
        tokens=shard.tokens,
        n=2 * width if moe.gated else width,
        k=moe.hidden_size,
        part=Part.MLP,
        kept_tokens=shard.kept_tokens if shard.kernels.keeps_gathered and shard.tp > 1 else 0.0,
        target=LoraTarget.FC1,
    )
    down = Linear(
        name="moe.shared.down",
        tokens=shard.tokens,
        n=moe.hidden_size,
        k=width,
        part=Part.MLP,
        target=LoraTarget.FC2,
    )
    return up, down


def _gate(moe: MoeSpec, shard: Shard, *, backward: bool) -> list[Piece]:
    if not moe.shared_gate:
        return []
    size = shard.element * shard.residual_tokens * moe.hidden_size
    passes = _GATE_BACKWARD_PASSES if backward else _GATE_PASSES
    return [
        MemoryBound(
            name="moe.shared.gate" + (".backward" if backward else ""),
            bytes=passes * size,
            kind=MemoryClass.POINTWISE,
            launches=passes,
            saved=0.0 if backward else size,
        )
    ]


def _closing(shard: Shard) -> Collective:
    return Collective.REDUCE_SCATTER if shard.sequence_parallel else Collective.ALL_REDUCE


def _by(linear: Linear) -> tuple[str, ...]:
    return (linear.name,)


def _alone(pieces: list[Piece], shard: Shard) -> list[Piece]:
    """Where the products hide the trips of the routed tokens they hide no collective of theirs."""
    if not shard.overlap.shared_expert or shard.hides_trips:
        return pieces
    return [
        replace(piece, hidden_by=()) if isinstance(piece, CommWork) else piece for piece in pieces
    ]
