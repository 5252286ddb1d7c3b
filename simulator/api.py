"""Forecasts of one training job on one machine: the closed-form estimate and the event run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from simulator.conditions import SOUND, Conditions, conditions_of, estimate_notes, network_notes
from simulator.cost.host_notes import host_capacity, host_warnings
from simulator.cost.host_update import host_memory_share
from simulator.cost.interference import interferes
from simulator.cost.memories import Memories
from simulator.cost.network.column import Column
from simulator.cost.network.passes import pass_columns
from simulator.cost.priced import WorkCost
from simulator.cost.provenance import provenance_of, utilisation_notes, with_warnings
from simulator.cost.step_costs import StepCosts
from simulator.errors import InputError, Problem
from simulator.estimate import (
    Timing,
    breakdown_of,
    busiest_stage,
    estimate_step_time,
    estimate_timing,
    spans_of,
)
from simulator.hardware.profile import Profile
from simulator.link_use import link_uses
from simulator.parallel.checks import check_layout
from simulator.parallel.layout import DataParallel, ParallelLayout, ScheduleName
from simulator.parallel.numbers import with_dtypes
from simulator.parallel.program import Programs, StepProgram
from simulator.playing import Played, Stage, play_step
from simulator.results import Breakdown, Category, LinkUse, MemoryUse, Provenance, StepResult
from simulator.scenario import Scenario
from simulator.schedule.csv_file import check_schedule
from simulator.schedule.graph import build_graph
from simulator.schedule.registry import schedule_options
from simulator.schedule.shape import graph_shape
from simulator.schedule.tasks import TaskGraph
from simulator.workload.calibrated import relative_spread, software_notes, with_software
from simulator.workload.job import TrainingJob
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack

_WATCHED = 16
"""Classes of links, the busiest, whose load is recorded over time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One layout, ready to be played."""

    program: StepProgram
    graph: TaskGraph
    costs: Sequence[WorkCost]
    """Of each work by itself."""


class Forecaster:
    """Forecasts layouts of one model, job, stack and machine; keeps what they have in common."""

    def __init__(
        self,
        model: ModelSpec,
        job: TrainingJob,
        stack: Stack,
        profile: Profile,
        world_size: int,
        *,
        conditions: Conditions = SOUND,
    ) -> None:
        self.model, self.job, self.profile = model, job, profile
        self.conditions, network = conditions, conditions.network
        self.stack = stack = with_software(with_dtypes(stack, job), profile.constants.software)
        self.world_size = world_size
        self.costs = StepCosts(model, job, stack, profile, network=network)
        self._memories = Memories(self.costs)
        self._programs = Programs(
            model,
            job,
            stack,
            profile.node.scale_up.domain_size if network is None else network.domains,
            transposes=profile.accelerator.fp8_needs_transposes,
        )

    @classmethod
    def of(cls, scenario: Scenario) -> Forecaster:
        """Return the forecaster of a scenario."""
        return cls(
            scenario.model.spec,
            scenario.file.job,
            scenario.stack,
            scenario.profile,
            scenario.world_size,
            conditions=conditions_of(scenario),
        )

    def under(self, conditions: Conditions) -> Forecaster:
        """Return the forecaster of the same job under other conditions."""
        return Forecaster(
            self.model,
            self.job,
            self.stack,
            self.profile,
            self.world_size,
            conditions=conditions,
        )

    def program(self, layout: ParallelLayout) -> StepProgram:
        """Return the step program of a legal layout."""
        return self._programs.of(layout)

    def check(self, layout: ParallelLayout, where: str = "") -> None:
        """Raise `InputError` with every rule that a layout breaks on this cluster."""
        if layout.world_size != self.world_size:
            raise InputError(
                Problem(
                    where=where,
                    key="layout",
                    found=f"tp x cp x dp x pp = {layout.world_size}",
                    rule=f"must use all {self.world_size} accelerators of the cluster",
                    fix=f"dp = {self.world_size // (layout.tp * layout.cp * layout.pp)}"
                    if self.world_size % (layout.tp * layout.cp * layout.pp) == 0
                    else "another tp, cp or pp, or another number of nodes",
                )
            )
        check_layout(self.model, self.job, self.stack, layout, where)
        if layout.optimizer_offload:
            # Raises where the profile does not say how fast the host is.
            assert host_memory_share(self.profile) > 0
        if layout.effective_schedule is ScheduleName.CSV:
            self._check_file(layout)

    def _check_file(self, layout: ParallelLayout) -> None:
        """Raise `InputError` with everything that is wrong in a layout's schedule file."""
        text = schedule_options(layout).text
        assert text is not None, "checked with the layout"
        micro_batches = layout.micro_batches(self.job.global_batch_size)
        check_schedule(text, layout.pipeline, micro_batches, str(layout.schedule_file))

    def step_time(self, layout: ParallelLayout) -> float:
        """Return the estimated step time of a legal layout in seconds, and nothing else."""
        return self._mean(layout, lambda step: estimate_step_time(step.graph, step.costs))

    def estimate(self, layout: ParallelLayout) -> StepResult:
        """Return the closed-form forecast of a legal layout."""
        step = self._step(layout)
        timing = estimate_timing(step.graph, step.costs)
        result = self._result(step, timing, self.step_time(layout))
        return with_warnings(result, estimate_notes(self.conditions))

    def simulate(
        self,
        layout: ParallelLayout,
        *,
        slowdown: Sequence[float] | None = None,
        spans: bool = True,
    ) -> StepResult:
        """Return the event-simulated forecast of a legal layout, with its timeline if `spans`.

        It differs from the estimate only where transfers share a link, where `slowdown[s]` makes
        stage s slower, where ranks differ, or where the stack says that communication slows
        compute. The timeline is that of the replica that sets the pace.
        """
        step = self._step(layout)
        played = self._play(step, slowdown, watched=_WATCHED if spans else 0)
        timing = Timing(start=played.run.start, end=played.run.end)
        mean = (
            self._mean(layout, lambda s: self._play(s, slowdown).step_time)
            if layout.data_parallel is DataParallel.LOCAL_SGD
            else played.step_time
        )
        shown = replace(step, costs=played.costs)
        result = self._result(shown, timing, mean, played.slowdown)
        timeline = spans_of(step.graph, timing) if spans else ()
        return replace(
            result,
            events=played.run.events,
            spans=timeline,
            drawn=played.drawn,
            played=played.kinds,
            links=self._links(played),
        )

    def memory(self, layout: ParallelLayout) -> tuple[MemoryUse, ...]:
        """Return the memory of one rank of each stage of a legal layout."""
        return self._memories.of_stages(self.program(layout))

    def peak_memory(self, layout: ParallelLayout) -> float:
        """Return the reserved bytes of the fullest stage of a legal layout, and nothing else."""
        return self._memories.peak(self.program(layout))

    def state_memory(self, layout: ParallelLayout) -> float:
        """Return the reserved bytes of the fullest stage before any pass; see `Memories.states`."""
        return self._memories.states(self.program(layout))

    def _step(self, layout: ParallelLayout, *, averages: bool = True) -> _Step:
        program = self.program(layout)
        graph = build_graph(graph_shape(program, averages=averages))
        return _Step(program=program, graph=graph, costs=self.costs.durations(program, graph.works))

    def _mean(self, layout: ParallelLayout, seconds_of: Callable[[_Step], float]) -> float:
        """Return the mean step: of local SGD one in `sync_every` steps averages parameters."""
        whole = seconds_of(self._step(layout))
        if layout.data_parallel is not DataParallel.LOCAL_SGD or layout.sync_every == 1:
            return whole
        plain = seconds_of(self._step(layout, averages=False))
        return plain + (whole - plain) / layout.sync_every

    def _play(self, step: _Step, slowdown: Sequence[float] | None, watched: int = 0) -> Played:
        stage = Stage(
            program=step.program,
            graph=step.graph,
            profile=self.profile,
            conditions=self.conditions,
        )
        costs, network = step.costs, self.conditions.network
        inside: Sequence[tuple[Column, float]] = ()
        if network is not None:
            costs = self.costs.alone(step.program, step.graph.works)
            if watched:
                inside = pass_columns(network, self.costs, step.program, step.graph)
        return play_step(stage, costs, slowdown, inside=inside, watched=watched)

    def _links(self, played: Played) -> tuple[LinkUse, ...]:
        """Return what the links behind the NICs carried, the busiest first."""
        network, routed = self.conditions.network, played.routed
        if network is None or routed is None:
            return ()
        return link_uses(network, routed, played.run)

    def fits_host(self, layout: ParallelLayout) -> bool:
        """Return whether what a legal layout offloads fits in its share of host memory."""
        if not layout.offload_layers and not layout.optimizer_offload:
            return True
        return max(use.host for use in self.memory(layout)) <= host_capacity(self.profile)

    def _result(
        self,
        step: _Step,
        timing: Timing,
        step_time: float,
        slowdown: Sequence[float] | None = None,
    ) -> StepResult:
        stage = busiest_stage(step.graph, step.costs, slowdown)
        healthy = slowdown[stage] if slowdown else 1.0
        drawn = self.conditions.jitter is not None
        factor = None if drawn or interferes(self.stack.overlap) else healthy
        seconds = breakdown_of(step.graph, step.costs, timing, stage, factor)
        if drawn and step.program.layout.data_parallel is not DataParallel.LOCAL_SGD:
            # The mean step has the shares of the one that was drawn last.
            mean = step_time / timing.step_time
            seconds = {kind: mean * value for kind, value in seconds.items()}
        else:
            # That of local SGD averages parameters, at its end, only one time in sync_every.
            seconds[Category.DATA_COMM] -= timing.step_time - step_time
        constants = self.profile.constants
        spread = relative_spread(self.stack, constants.software, constants.spread)
        memory = self._memories.of_stages(step.program)
        layout = step.program.layout
        notes = host_warnings(layout, self.stack, self.profile, memory)
        notes = (*notes, *network_notes(self.conditions, layout))
        peak = self.profile.accelerator.peak[self.job.precision]
        busy = self.model_flops / (step_time * step.program.layout.world_size * peak)
        notes = (*notes, *utilisation_notes(busy), *software_notes(self.stack, constants.software))
        return StepResult(
            step_time=step_time,
            low=step_time / (1 + spread),
            high=step_time * (1 + spread),
            tokens=self.job.tokens_per_step,
            world_size=step.program.layout.world_size,
            model_flops=self.model_flops,
            hardware_flops=self._hardware_flops(step.program),
            peak_flops=peak,
            breakdown=Breakdown(stage=stage, seconds=seconds),
            memory=memory,
            memory_capacity=self.profile.accelerator.memory,
            host_capacity=host_capacity(self.profile),
            provenance=replace(self.provenance, warnings=(*self.provenance.warnings, *notes)),
        )

    @cached_property
    def model_flops(self) -> float:
        """FLOP of one step over all ranks: three times the forward pass, attention unmasked.

        Frozen weights have no weight gradient, so that a token costs two thirds of that in them;
        their adapters count in full.
        """
        plain = self.program(ParallelLayout())
        (chunk,) = plain.chunks
        once = sum(
            priced.passes.forward.model_flops * n
            for priced, n in self.costs.parts(plain, chunk.whole)
        )
        if self.job.freezes:
            backward = sum(
                priced.passes.backward.model_flops * n
                for priced, n in self.costs.parts(plain, chunk.whole)
            )
            return (once + backward) * self.job.global_batch_size
        return 3 * once * self.job.global_batch_size

    @cached_property
    def trainable_parameters(self) -> float:
        """Parameters that are trained, adapters and the rows that pad the vocabulary included."""
        (chunk,) = self.program(ParallelLayout()).chunks
        return chunk.whole.trained + chunk.whole.trained_experts

    def _hardware_flops(self, program: StepProgram) -> float:
        """FLOP of one step over all ranks as the matrix units run them."""
        once = sum(
            (p.passes.forward.flops + p.passes.backward.flops + p.passes.recompute.flops) * n
            for chunk in program.chunks
            for p, n in self.costs.parts(program, chunk.whole)
        )
        layout, pipeline = program.layout, program.layout.pipeline
        # DualPipe holds each part twice, and each copy runs half of the passes.
        passes = program.micro_batches * pipeline.way / pipeline.places
        return once * layout.tp * layout.cp * layout.dp * passes

    @cached_property
    def provenance(self) -> Provenance:
        """What all forecasts of this job are computed from."""
        return provenance_of(self.model, self.job, self.stack, self.profile)
