"""Memory of the stages of a step program, from the passes that are priced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from simulator.cost.section_cache import SectionCache
from simulator.cost.step_costs import StepCosts
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.memory import (
    NOTHING,
    ChunkMemory,
    InFlight,
    StageHeld,
    Working,
    reserved_bytes,
    stage_held,
    stage_memory,
    stage_working,
)
from simulator.parallel.offload import staged_bytes
from simulator.parallel.program import PassProgram, Programs, StepProgram
from simulator.parallel.sections import Sections
from simulator.parallel.segments import Section
from simulator.parallel.shard import casts_in_each_pass
from simulator.results import MemoryUse
from simulator.schedule.memory import fullest_moments, fullest_of_stages
from simulator.schedule.registry import ScheduleOptions, schedule_options
from simulator.workload.stack_choices import ScheduleName

_PIPELINE = ("pp", "vpp", "schedule", "schedule_file", "placement", "layers_per_stage")
_HELD = itemgetter(
    *_PIPELINE,
    *("tp", "cp", "dp", "ep", "zero_stage", "shard_size", "data_parallel", "optimizer_offload"),
)
"""All that decides what a stage holds before any pass, with the tp of the experts."""
_TAKEN = itemgetter(
    *_PIPELINE,
    *("tp", "cp", "dp", "ep", "etp", "sequence_parallel", "cp_comm_type", "cp_inner"),
    *("micro_batch_size", "microbatch_group_size", "extra_warm_up", "offload_layers"),
    *("recompute", "recompute_modules", "recompute_method", "recompute_num_layers"),
)
"""All that decides what the passes take, with whether they cast weights anew."""


_Pipeline = tuple[Sections, ScheduleName, int, ScheduleOptions]
"""What decides how many micro-batches of each chunk are alive; the number is micro-batches."""


class Memories:
    """Memory of layouts of one model, job, stack and machine; keeps what they have in common."""

    def __init__(self, costs: StepCosts, programs: Programs) -> None:
        self._costs, self._programs = costs, programs
        self._chunks = {splits: SectionCache[ChunkMemory]() for splits in (False, True)}
        """By whether weight gradients are put off."""
        self._moments_of_runs: dict[_Pipeline, tuple[tuple[InFlight, ...], ...]] = {}
        self._stages_held: dict[tuple[Any, ...], tuple[StageHeld, ...]] = {}
        self._stages_taken: dict[tuple[Any, ...], tuple[Working, ...]] = {}

    def of_stages(self, program: StepProgram) -> tuple[MemoryUse, ...]:
        """Return the memory of one rank of each stage."""
        moments, found = self._moments(program), []
        for stage in range(program.layout.pp):
            chunks = self.of_chunks(program, stage)
            fullest = max(moments[stage], key=lambda moment: moment.bytes(chunks))
            found.append(stage_memory(program, stage, chunks, fullest))
        return tuple(found)

    def of_chunks(self, program: PassProgram, stage: int) -> tuple[ChunkMemory, ...]:
        """Return the activations of one micro-batch in each chunk of a stage."""
        places, sections = program.layout.pipeline.places_of(stage), program.sections.of_places
        splits = self._splits(program)
        return tuple(self._of_chunk(program, sections[place], splits) for place in places)

    def peak(self, layout: ParallelLayout) -> float:
        """Return the reserved bytes of the fullest stage of a layout, and nothing else.

        What a stage holds and what its passes take depend on different fields of the layout. Both
        are computed once for equal ones, so that most layouts of a search need no program.
        """
        held, taken = self._held(layout), self._taken(layout)
        memory, offloaded = self._costs.stack.memory, layout.optimizer_offload
        return max(
            [
                reserved_bytes(stage.states(offloaded), stage.gathered, working, memory)
                for stage, working in zip(held, taken, strict=True)
            ]
        )

    def states(self, layout: ParallelLayout) -> float:
        """Return the reserved bytes of the fullest stage before any pass.

        It is part of `peak`, and the same for all micro-batch sizes, recomputation, offload
        of activations, sequence parallelism and exchanges of context parallelism.
        """
        memory, offloaded = self._costs.stack.memory, layout.optimizer_offload
        return max(
            [
                reserved_bytes(stage.states(offloaded), stage.gathered, NOTHING, memory)
                for stage in self._held(layout)
            ]
        )

    def _held(self, layout: ParallelLayout) -> tuple[StageHeld, ...]:
        """Return what the first of each run of stages with equal chunks holds."""
        key = (_HELD(layout.__dict__), layout.expert_tp)
        found = self._stages_held.get(key)
        if found is None:
            program = self._programs.of(layout)
            found = tuple(stage_held(program, first) for first, _ in program.runs_of_stages())
            self._stages_held[key] = found
        return found

    def _taken(self, layout: ParallelLayout) -> tuple[Working, ...]:
        """Return what the passes of each run of stages with equal chunks take at most.

        Neighbouring stages with equal chunks differ only in what they hold in flight, so that of
        those the one that holds most is looked at alone.
        """
        key = (_TAKEN(layout.__dict__), casts_in_each_pass(layout, self._costs.job))
        found = self._stages_taken.get(key)
        if found is None:
            found = self._stages_taken[key] = tuple(self._working(self._programs.passes_of(layout)))
        return found

    def _working(self, program: PassProgram) -> Iterator[Working]:
        sections, splits = program.sections, self._splits(program)
        memories = [self._of_chunk(program, section, splits) for section in sections.distinct]
        for run, moments in zip(sections.runs, self._fullest_of_runs(program), strict=True):
            chunks = [memories[number] for number in run.sections]
            fullest = moments[0]
            if len(moments) > 1:
                fullest = max(moments, key=lambda moment: moment.bytes(chunks))
            yield stage_working(chunks, fullest)

    def _fullest_of_runs(self, program: PassProgram) -> tuple[tuple[InFlight, ...], ...]:
        """Return for each run of stages the moments at which the fullest of them may be fullest."""
        layout, sections = program.layout, program.sections
        options = schedule_options(layout)
        key = (sections, layout.effective_schedule, program.micro_batches, options)
        found = self._moments_of_runs.get(key)
        if found is None:
            pipeline = (layout.effective_schedule, layout.pp, layout.vpp, program.micro_batches)
            found = self._moments_of_runs[key] = tuple(
                fullest_of_stages(
                    *pipeline, options=options, stages=(run.first, run.last), alike=run.alike
                )
                for run in sections.runs
            )
        return found

    def _moments(self, program: StepProgram) -> Sequence[Sequence[InFlight]]:
        """Return for each stage the moments at which it may be fullest."""
        layout = program.layout
        name, options = layout.effective_schedule, schedule_options(layout)
        return fullest_moments(name, layout.pp, layout.vpp, program.micro_batches, options)

    def _splits(self, program: PassProgram) -> bool:
        """Return whether any stage holds what only weight gradients wait for."""
        return any(moment.for_weights for run in self._fullest_of_runs(program) for moment in run)

    def _of_chunk(self, program: PassProgram, section: Section, splits: bool) -> ChunkMemory:
        make = partial(self._chunk_memory, program, section, splits)
        return self._chunks[splits].get(program.shard, section, make)

    def _chunk_memory(self, program: PassProgram, section: Section, splits: bool) -> ChunkMemory:
        parts = self._costs.parts(program, section)
        kept = transient = offloaded = logits = 0.0
        for priced, count in parts:
            passes = priced.passes
            kept += passes.kept * count
            offloaded += passes.offloaded * count
            transient = max(transient, passes.transient)
        if section.head:
            # The losses of multi-token prediction are one graph: all logits live until backward.
            (head, losses), inner = parts[-1], parts[:-1]
            logits = head.passes.transient * losses
            transient = max((priced.passes.transient for priced, _ in inner), default=0.0)
        return ChunkMemory(
            kept=kept,
            transient=transient,
            logits=logits,
            staged=staged_bytes((p.passes.offloaded, n) for p, n in parts) if offloaded else 0.0,
            offloaded=offloaded,
            kept_for_weights=sum(p.kept_for_weights * n for p, n in parts) if splits else 0.0,
        )
