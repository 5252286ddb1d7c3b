"""What a plan is expanded for: processes, device, and the model with the shapes it runs in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from calibrate.batches import DeviceFacts, World
from calibrate.plan_file import ModelPlan, Plan
from simulator.errors import InputError, Problem
from simulator.hardware.accelerator import Dtype
from simulator.parallel.blocks import head_passes, layer_blocks
from simulator.parallel.checks import check_layout
from simulator.parallel.chunks import local_vocab
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.shard import make_shard
from simulator.parallel.work import Block, Piece
from simulator.workload.job import TrainingJob
from simulator.workload.load import load_model
from simulator.workload.model import ModelSpec
from simulator.workload.stack import load_stack

LEAST_SEQ = 128
"""Tokens below which a sequence is not cut; fused attention works on blocks of about as many."""
_SHAPE_STACK = "megatron-core"
"""Fused attention and one product for queries, keys and values; no stack has other shapes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The model that is measured, and the sequence length that the device does in time."""

    name: str
    spec: ModelSpec
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A plan on one machine."""

    plan: Plan
    world: World
    facts: DeviceFacts
    subject: Subject | None
    """None where no section needs a model."""

    @property
    def main_dtype(self) -> Dtype:
        """The number format that training uses here: the device's first."""
        return self.facts.dtypes[0]

    @property
    def room(self) -> float:
        """Bytes that the tensors of one point may take; CPU ranks of a node share its memory."""
        sharing = self.world.local_size if self.on_cpu else 1
        return self.plan.sizes.memory * self.facts.memory / sharing

    @property
    def most_flops(self) -> float:
        """FLOP of the longest kernel."""
        return float(self.plan.sizes.run * self.facts.flops)

    @property
    def most_moved(self) -> float:
        """Bytes that the longest memory-bound kernel moves."""
        bandwidth = self.facts.bandwidth
        return self.room if bandwidth is None else min(self.room, self.plan.sizes.run * bandwidth)

    @property
    def on_cpu(self) -> bool:
        """Whether ranks are CPUs."""
        return self.facts.device == "cpu"

    @property
    def training_ranks(self) -> int:
        """Processes that run a training step on one device at the same time."""
        section = self.plan.training
        return self.world.size if section is not None and section.ranks == "all" else 1

    @property
    def layer_ranks(self) -> int:
        """Processes that run a part of the model at the same time."""
        section = self.plan.layers
        return self.world.size if section is not None and section.ranks == "all" else 1

    @property
    def cuts(self) -> tuple[tuple[int, int], ...]:
        """Micro-batches and tensor-parallel sizes at which the model's shapes are measured."""
        section = self.plan.model
        return ((1, 1),) if section is None else tuple(product(section.micro_batches, section.tp))

    def dtypes(self, wanted: tuple[Dtype, ...]) -> tuple[Dtype, ...]:
        """Return those of `wanted` that the device takes; its main one where it takes none."""
        return tuple(d for d in wanted if d in self.facts.dtypes) or (self.main_dtype,)


def case_of(plan: Plan, world: World, facts: DeviceFacts, model: str | None) -> Case:
    """Return the case with its model, where the plan needs one.

    Raises:
        InputError: no model is named, or it cannot be read.
    """
    subject = _subject(plan, facts, model) if _needs_model(plan) else None
    return Case(plan=plan, world=world, facts=facts, subject=subject)


def model_pieces(case: Case) -> tuple[Piece, ...]:
    """Return what the forward passes over each kind of layer and the head run on one rank.

    For every micro-batch and tensor-parallel size of the plan that the model can be cut into.
    """
    subject = case.subject
    assert subject is not None, "asked for only where the plan measures the model"
    return tuple(
        piece
        for micro_batch, tp in case.cuts
        for block in _blocks(subject.spec, subject.seq, micro_batch, tp)
        for piece in block.pieces
    )


def can_cut(case: Case, tp: int) -> bool:
    """Return whether `tp` ranks can share the layers of the model."""
    subject = case.subject
    return subject is not None and bool(_blocks(subject.spec, subject.seq, 1, tp))


def _needs_model(plan: Plan) -> bool:
    kernels = [part.model for part in (plan.gemm, plan.attention) if part is not None]
    steps = any(step.model is None for step in plan.step)
    parts = (plan.layers, plan.training, plan.stragglers)
    return any(kernels) or steps or any(part is not None for part in parts)


def _subject(plan: Plan, facts: DeviceFacts, model: str | None) -> Subject:
    """Return the model asked for, else the plan's first default whose layer runs in time."""
    section = plan.model
    names = (model,) if model is not None else section.default if section is not None else ()
    if not names:
        rule = "measures a model, and none is named"
        fix = 'name one with --model, or in the plan: [model] default = ["llama3.1-8b"]'
        raise InputError(Problem(where="plan", key="model", rule=rule, fix=fix))
    wanted = (section or ModelPlan(default=names)).seq_length
    limit = float(plan.sizes.run * facts.flops)
    candidates = [_candidate(name, wanted) for name in names]
    fast = [each for each in candidates if _layer_flops(each.spec, each.seq) <= limit]
    return fast[0] if fast else _shortened(candidates[-1], limit)


def _candidate(name: str, wanted: int) -> Subject:
    spec = load_model(name).spec
    return Subject(name=name, spec=spec, seq=min(wanted, spec.max_position_embeddings))


def _shortened(subject: Subject, limit: float) -> Subject:
    """Return the subject with its sequence halved until a layer's forward pass does `limit`."""
    seq = subject.seq
    while seq > LEAST_SEQ and _layer_flops(subject.spec, seq) > limit:
        seq = max(LEAST_SEQ, seq // 2)
    return replace(subject, seq=seq)


def _layer_flops(spec: ModelSpec, seq: int) -> float:
    """Return the FLOP of the largest layer's forward pass over one sequence."""
    *layers, _head = _blocks(spec, seq, 1, 1)
    return max(layer.flops for layer in layers)


@lru_cache(maxsize=256)
def _blocks(spec: ModelSpec, seq: int, micro_batch: int, tp: int) -> tuple[Block, ...]:
    job = TrainingJob(global_batch_size=micro_batch, seq_length=seq)
    layout = ParallelLayout(tp=tp, micro_batch_size=micro_batch)
    stack = load_stack(_SHAPE_STACK)
    try:
        check_layout(spec, job, stack, layout)
    except InputError:
        return ()
    shard = make_shard(layout, job, stack, domains=tp)
    vocab = local_vocab(spec.vocab_size, job.make_vocab_size_divisible_by, tp)
    layers = [layer_blocks(layer, shard)[0] for layer in spec.layer_groups()]
    return (*layers, head_passes(spec.hidden_size, vocab, shard).forward)
