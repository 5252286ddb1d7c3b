"""What a rank holds of each parameter: weights, gradients, optimizer states, before activations.

Routed experts and the rest are two groups, each sharded by ZeRO over its own data ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from simulator.parallel.layout import ZERO_STATES
from simulator.parallel.matrices import Ranks, layer_matrices
from simulator.parallel.program import StepProgram
from simulator.parallel.segments import Segment
from simulator.workload.job import Part, TrainingJob
from simulator.workload.layer import LayerSpec
from simulator.workload.optimizers import STATE_RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The parameters of one rank of a stage that are sharded over the same data ranks."""

    parameters: float
    trained: float
    narrow: float
    """Weights of linear layers among `parameters`."""
    matrices: tuple[tuple[tuple[int, int], int], ...]
    """Shapes of trained weights of layers, with how many there are of each, where the optimizer or
    a compression of gradients depends on them; else none."""
    tables: tuple[tuple[int, int], ...] = ()
    """Shapes of trained embedding, position and output tables."""
    shards: int
    """Data ranks that share its states."""

    @property
    def matrix_parameters(self) -> float:
        """Parameters of the trained weights of layers."""
        return float(sum(k * n * count for (k, n), count in self.matrices))


def groups(program: StepProgram, stage: int) -> tuple[Group, Group]:
    """Return the parameters of one rank of a stage: all but routed experts, and those."""
    segments = [chunk.whole for chunk in program.stage_chunks(stage)]
    shaped = segments if _asks_for_shapes(program.job) else []
    rest = Group(
        parameters=sum(segment.parameters for segment in segments),
        trained=sum(segment.trained for segment in segments),
        narrow=sum(segment.narrow for segment in segments),
        matrices=_shapes(program, shaped, routed=False),
        tables=tuple(shape for segment in shaped for shape in _tables(program, segment)),
        shards=program.data_group.size,
    )
    experts = Group(
        parameters=sum(segment.expert_parameters for segment in segments),
        trained=sum(segment.trained_experts for segment in segments),
        narrow=sum(segment.narrow_experts for segment in segments),
        matrices=_shapes(program, shaped, routed=True),
        shards=program.expert_data_group.size,
    )
    return rest, experts


def segment_matrices(program: StepProgram, segment: Segment) -> Counter[tuple[int, int]]:
    """Return the shapes of a segment's trained weights, routed experts apart, with counts."""
    return Counter(dict(_shapes(program, [segment], routed=False)))


def trained_narrow(program: StepProgram, segment: Segment) -> float:
    """Return a segment's trained weights of narrow linear layers, routed experts apart."""
    if not program.job.freezes:
        return segment.narrow
    layout = program.layout
    ranks = Ranks(tp=layout.tp, ep=layout.ep, expert_tp=layout.expert_tp)
    works = [*segment.layers, *([] if segment.mtp is None else [segment.mtp])]
    return sum(
        matrix.parameters * count
        for work, count in works
        for matrix in layer_matrices(work.layer, ranks)
        if matrix.narrow and matrix.part is not Part.EXPERTS and program.job.trains(matrix.part)
    )


def state_bytes(program: StepProgram, group: Group) -> float:
    """Return the bytes of a group's optimizer states before ZeRO, master copies apart."""
    rule, element = STATE_RULES[program.job.optimizer], program.numbers.state
    if rule.matrix == rule.other and not rule.factored:
        return element * rule.matrix * group.trained
    matrices = group.matrix_parameters
    factors = 0.0
    if rule.factored:
        factors = float(sum((k + n) * count for (k, n), count in group.matrices))
        factors += sum(k + n for k, n in group.tables)
        matrices += sum(k * n for k, n in group.tables)
    numbers = rule.matrix * matrices + rule.other * (group.trained - matrices)
    return element * (numbers + factors * rule.factored)


def sharded(program: StepProgram, group: Group, level: int) -> float:
    """Return the share of a group's bytes that one rank holds of what ZeRO shards from `level`."""
    return 1.0 / group.shards if program.layout.zero_stage >= level else 1.0


def optimizer_bytes(program: StepProgram, group: Group) -> float:
    """Return the bytes of states and master copies of one rank."""
    whole = program.numbers.master * group.trained + state_bytes(program, group)
    return whole * sharded(program, group, ZERO_STATES)


def _asks_for_shapes(job: TrainingJob) -> bool:
    rule = STATE_RULES[job.optimizer]
    uneven = rule.matrix != rule.other or rule.factored or rule.orthogonalises
    return uneven or job.powersgd_rank is not None


def _shapes(
    program: StepProgram, segments: Sequence[Segment], *, routed: bool
) -> tuple[tuple[tuple[int, int], int], ...]:
    if not segments:
        return ()
    layout, counts = program.layout, Counter[tuple[int, int]]()
    ranks = Ranks(tp=layout.tp, ep=layout.ep, expert_tp=layout.expert_tp)
    parts = frozenset(part for part in Part if program.job.trains(part))
    for segment in segments:
        works = [*segment.layers, *([] if segment.mtp is None else [segment.mtp])]
        for work, number in works:
            for shape, count in _layer_shapes(work.layer, ranks, parts, routed=routed):
                counts[shape] += count * number
    return tuple(counts.items())


@lru_cache(maxsize=4096)
def _layer_shapes(
    layer: LayerSpec, ranks: Ranks, trained: frozenset[Part], *, routed: bool
) -> tuple[tuple[tuple[int, int], int], ...]:
    matrices = [
        matrix
        for matrix in layer_matrices(layer, ranks)
        if (matrix.part is Part.EXPERTS) is routed and matrix.part in trained
    ]
    return tuple(((matrix.k, matrix.n), matrix.batch) for matrix in matrices)


def _tables(program: StepProgram, segment: Segment) -> list[tuple[int, int]]:
    """Return the trained tables of a segment's ends; a shared one stands at the embedding."""
    model, job, hidden = program.model, program.job, program.model.hidden_size
    tables = []
    if segment.embedding and job.trains(Part.EMBEDDING):
        tables.append((program.local_vocab, hidden))
        if model.position_parameters:
            tables.append((model.position_parameters // hidden, hidden))
    shared = model.tie_word_embeddings and program.layout.pp == 1
    if segment.head and not shared and job.trains(Part.HEAD):
        tables.append((program.local_vocab, hidden))
    return tables
