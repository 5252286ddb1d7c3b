"""Memory of the stages of a step program, from the passes that are priced."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from simulator.cost.segment_cache import SegmentCache
from simulator.cost.step_costs import StepCosts
from simulator.parallel.memory import ChunkMemory, InFlight, stage_memory
from simulator.parallel.offload import staged_bytes
from simulator.parallel.program import StepProgram
from simulator.parallel.segments import Segment
from simulator.results import MemoryUse
from simulator.schedule.memory import fullest_moments, fullest_of_stages
from simulator.schedule.registry import schedule_options


class Memories:
    """Memory of layouts of one model, job, stack and machine; keeps what they have in common."""

    def __init__(self, costs: StepCosts) -> None:
        self._costs = costs
        self._chunks = SegmentCache[ChunkMemory]()

    def of_stages(self, program: StepProgram) -> tuple[MemoryUse, ...]:
        """Return the memory of one rank of each stage."""
        parts, moments = self._chunk_memories(program), self._moments(program)
        found = []
        for stage in range(program.layout.pp):
            chunks = [parts[id(chunk)] for chunk in program.stage_chunks(stage)]
            fullest = max(moments[stage], key=lambda moment: moment.bytes(chunks))
            found.append(stage_memory(program, stage, chunks, fullest))
        return tuple(found)

    def peak(self, program: StepProgram) -> float:
        """Return the reserved bytes of the fullest stage, and nothing else.

        Neighbouring stages with equal chunks differ only in what they hold in flight, so that of
        those the one that holds most is looked at alone.
        """
        layout = program.layout
        parts, options = self._chunk_memories(program), schedule_options(layout)
        pipeline = (layout.effective_schedule, layout.pp, layout.vpp, program.micro_batches)
        found = []
        for run in program.runs_of_stages():
            chunks = [parts[id(chunk)] for chunk in program.stage_chunks(run[0])]
            alike = all(chunk is chunks[0] for chunk in chunks)
            moments = fullest_of_stages(*pipeline, options=options, stages=run, alike=alike)
            fullest = moments[0]
            if len(moments) > 1:
                fullest = max(moments, key=lambda moment: moment.bytes(chunks))
            found.append(stage_memory(program, run[0], chunks, fullest).reserved)
        return max(found)

    def states(self, program: StepProgram) -> float:
        """Return the reserved bytes of the fullest stage before any pass.

        It is part of `peak`, and the same for all micro-batch sizes, recomputation, offload
        of activations, sequence parallelism and exchanges of context parallelism.
        """
        chunks = [ChunkMemory(kept=0.0, transient=0.0, logits=0.0)] * program.layout.vpp
        nothing = InFlight(by_chunk={}, moment="before any pass")
        stages = [first for first, _ in program.runs_of_stages()]
        return max(stage_memory(program, s, chunks, nothing).reserved for s in stages)

    def _moments(self, program: StepProgram) -> Sequence[Sequence[InFlight]]:
        """Return for each stage the moments at which it may be fullest."""
        layout = program.layout
        name, options = layout.effective_schedule, schedule_options(layout)
        return fullest_moments(name, layout.pp, layout.vpp, program.micro_batches, options)

    def _chunk_memories(self, program: StepProgram) -> dict[int, ChunkMemory]:
        distinct = {id(chunk): chunk for chunk in program.chunks}
        return {
            key: self._chunks.get(
                program.shard, chunk.whole, partial(self._chunk_memory, program, chunk.whole)
            )
            for key, chunk in distinct.items()
        }

    def _chunk_memory(self, program: StepProgram, whole: Segment) -> ChunkMemory:
        parts = [(priced.passes, n) for priced, n in self._costs.parts(program, whole)]
        # The losses of multi-token prediction are one graph: all logits live until backward.
        logits = parts[-1][0].transient * parts[-1][1] if whole.head else 0.0
        inner = parts[:-1] if whole.head else parts
        return ChunkMemory(
            kept=sum(passes.kept * n for passes, n in parts),
            transient=max((passes.transient for passes, _ in inner), default=0.0),
            logits=logits,
            staged=staged_bytes((passes.offloaded, n) for passes, n in parts),
            offloaded=sum(passes.offloaded * n for passes, n in parts),
            kept_for_weights=sum(passes.kept_for_weights * n for passes, n in parts),
        )
