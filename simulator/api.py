"""Forecasts of one training job on one machine: the closed-form estimate and the event run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from simulator.conditions import SOUND, Conditions, conditions_of, estimate_notes, network_notes
from simulator.cost.host_notes import host_capacity, host_warnings
from simulator.cost.host_update import host_memory_share
from simulator.cost.interference import interferes
from simulator.cost.machine import Machine
from simulator.cost.network.bursts import only_counted
from simulator.cost.network.passes import pass_flows
from simulator.cost.priced import WorkCost
from simulator.cost.provenance import provenance_of, utilisation_notes, with_warnings
from simulator.errors import InputError, Problem
from simulator.estimate import (
    Timing,
    breakdown_of,
    busiest_stage,
    estimate_step_time,
    estimate_timing,
    spans_of,
)
from simulator.hardware.parts import kinds, mean_peak
from simulator.hardware.profile import Profile
from simulator.link_use import link_uses
from simulator.mixed import Mixed
from simulator.parallel.checks import check_layout
from simulator.parallel.layout import DataParallel, ParallelLayout, ScheduleName
from simulator.parallel.program import PassProgram, StepProgram
from simulator.playing import Played, Stage, play_step
from simulator.results import Breakdown, Category, LinkUse, MemoryUse, Provenance, StepResult
from simulator.scenario import Scenario
from simulator.schedule.csv_file import check_schedule
from simulator.schedule.graph import build_graph
from simulator.schedule.registry import schedule_options
from simulator.schedule.shape import graph_shape
from simulator.schedule.tasks import TaskGraph
from simulator.storage import storage_notes
from simulator.workload.calibrated import relative_spread, software_notes
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
        self.world_size = world_size
        profiles = kinds(conditions.parts) or (profile,)
        machines = [Machine.of(model, job, stack, each, network) for each in profiles]
        self._machines = machines
        self.mixed = Mixed(machines, conditions) if conditions.parts else None
        """Of a cluster of several kinds of machines; the first of them is `profile`."""
        self.stack, self.costs = machines[0].stack, machines[0].costs
        self._memories, self._programs = machines[0].memories, machines[0].programs

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

    def passes(self, layout: ParallelLayout) -> PassProgram:
        """Return what the passes of a legal layout run."""
        return self._programs.passes_of(layout)

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
            # Raises where a profile does not say how fast the host is.
            for machine in self._machines:
                assert host_memory_share(machine.profile) > 0
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
        varies = layout.data_parallel is DataParallel.LOCAL_SGD
        mean = self.step_time(layout) if varies else timing.step_time
        result = self._result(step, timing, mean)
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
        played = self._play(step, slowdown, self.conditions, watched=_WATCHED if spans else 0)
        timing = Timing(start=played.run.start, end=played.run.end)
        mean = (
            self._mean(layout, lambda s: self._seconds(s, slowdown))
            if layout.data_parallel is DataParallel.LOCAL_SGD
            else self._seconds(step, slowdown, played)
        )
        shown = replace(step, costs=played.costs)
        result = self._result(shown, timing, mean, played.slowdown)
        stages = range(layout.pp) if spans else ()
        return replace(
            result,
            events=played.run.events,
            tasks=len(step.graph) * len(played.run.ends),
            played_tasks=played.run.played,
            spans=spans_of(step.graph, timing) if spans else (),
            breakdowns=tuple(
                self._breakdown(shown, timing, mean, stage, played.slowdown) for stage in stages
            ),
            drawn=played.drawn,
            played=played.kinds,
            links=self._links(played),
        )

    def machine_of(self, layout: ParallelLayout, stage: int) -> Machine:
        """Return the machine of a stage: of several the one with the least peak."""
        if self.mixed is None:
            return self._machines[0]
        held = [self._machines[kind] for kind in self.mixed.stage_kinds(layout)[stage]]
        precision = self.job.precision
        return min(held, key=lambda machine: machine.profile.accelerator.peak[precision])

    def memory(self, layout: ParallelLayout) -> tuple[MemoryUse, ...]:
        """Return the memory of one rank of each stage of a legal layout."""
        if self.mixed is not None:
            return tuple(use for use, _ in self.mixed.memory(layout))
        return self._memories.of_stages(self.program(layout))

    def memory_limits(self, layout: ParallelLayout) -> tuple[float, ...]:
        """Return for each stage the bytes of memory of an accelerator that it stands on."""
        if self.mixed is not None:
            return tuple(room for _, room in self.mixed.memory(layout))
        return (float(self.profile.accelerator.memory),) * layout.pp

    def peak_memory(self, layout: ParallelLayout) -> float:
        """Return the reserved bytes of the fullest stage of a legal layout, and nothing else.

        In a mixed cluster the fullest is the one that has least room left for its size, and bytes
        count as if its accelerator had the memory of one of the first part: so that one limit holds
        for all.
        """
        if self.mixed is not None:
            first = float(self.profile.accelerator.memory)
            return max(use.reserved * first / room for use, room in self.mixed.memory(layout))
        return self._memories.peak(layout)

    def state_memory(self, layout: ParallelLayout) -> float:
        """Return the reserved bytes of the fullest stage before any pass; see `Memories.states`.

        In a mixed cluster they count as if all had the memory of its largest accelerators, in that
        of the first part: no more than `peak_memory`.
        """
        states = self._memories.states(layout)
        if self.mixed is None:
            return states
        return states * float(self.profile.accelerator.memory) / self.mixed.largest_memory

    def _step(self, layout: ParallelLayout, *, averages: bool = True) -> _Step:
        program = self.program(layout)
        graph = build_graph(graph_shape(program, averages=averages))
        if self.mixed is not None:
            costs = self.mixed.estimated(program, graph)
        else:
            costs = self.costs.durations(program, graph.works)
        return _Step(program=program, graph=graph, costs=costs)

    def _mean(self, layout: ParallelLayout, seconds_of: Callable[[_Step], float]) -> float:
        """Return the mean step: of local SGD one in `sync_every` steps averages parameters."""
        whole = seconds_of(self._step(layout))
        if layout.data_parallel is not DataParallel.LOCAL_SGD or layout.sync_every == 1:
            return whole
        plain = seconds_of(self._step(layout, averages=False))
        return plain + (whole - plain) / layout.sync_every

    def _play(
        self,
        step: _Step,
        slowdown: Sequence[float] | None,
        conditions: Conditions,
        watched: int = 0,
    ) -> Played:
        stage = Stage(
            program=step.program,
            graph=step.graph,
            profile=self.profile,
            conditions=conditions,
            mixed=self.mixed,
        )
        costs, network = step.costs, self.conditions.network
        if network is None:
            return play_step(stage, costs, slowdown, watched=watched)
        works = step.graph.works
        inside = pass_flows(self.costs, step.program, works)
        if self.mixed is not None:
            # Costs of a mixed cluster depend on who plays; what its passes send meets nothing.
            inside = only_counted(inside)
            return play_step(stage, costs, slowdown, inside=inside, watched=watched)
        costs = self.costs.alone(step.program, works)
        return play_step(stage, costs, slowdown, inside=inside, watched=watched)

    def _seconds(
        self, step: _Step, slowdown: Sequence[float] | None, played: Played | None = None
    ) -> float:
        """Return the seconds of a step, the mean of those with and without a checkpoint."""
        storage = self.conditions.storage
        writing = (played or self._play(step, slowdown, self.conditions)).step_time
        if storage is None or storage.writes is None or not storage.file.write:
            return writing
        between = replace(self.conditions, storage=storage.idle)
        idle = self._play(step, slowdown, between).step_time
        return storage.mean_step(step.program, writing, idle)

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
        return max(use.host for use in self.memory(layout)) <= self._host_capacity

    @property
    def _host_capacity(self) -> float:
        if self.mixed is not None:
            return self.mixed.smallest_host
        return host_capacity(self.profile)

    def _result(
        self,
        step: _Step,
        timing: Timing,
        step_time: float,
        slowdown: Sequence[float] | None = None,
    ) -> StepResult:
        stage = busiest_stage(step.graph, step.costs, slowdown)
        breakdown = self._breakdown(step, timing, step_time, stage, slowdown)
        constants = self.profile.constants
        spread = relative_spread(self.stack, constants.software, constants.spread)
        spread = spread if self.mixed is None else self.mixed.spread()
        layout = step.program.layout
        memory, limits = self.memory(layout), self.memory_limits(layout)
        notes = (*self._machine_notes(layout, memory), *network_notes(self.conditions, layout))
        peak = self.peak_flops
        busy = self.model_flops / (step_time * step.program.layout.world_size * peak)
        notes = (*notes, *storage_notes(self.conditions.storage, step.program, step_time))
        notes = (*notes, *utilisation_notes(busy))
        return StepResult(
            step_time=step_time,
            low=step_time / (1 + spread),
            high=step_time * (1 + spread),
            tokens=self.job.tokens_per_step,
            world_size=step.program.layout.world_size,
            model_flops=self.model_flops,
            hardware_flops=self._hardware_flops(step.program),
            peak_flops=peak,
            breakdown=breakdown,
            memory=memory,
            memory_capacity=min(limits),
            stage_capacity=limits if self.mixed is not None else (),
            host_capacity=self._host_capacity,
            provenance=replace(self.provenance, warnings=(*self.provenance.warnings, *notes)),
        )

    def _breakdown(
        self,
        step: _Step,
        timing: Timing,
        step_time: float,
        stage: int,
        slowdown: Sequence[float] | None = None,
    ) -> Breakdown:
        """Return the step of one stage by category."""
        healthy = slowdown[stage] if slowdown else 1.0
        drawn = self.conditions.jitter is not None
        factor = None if drawn or interferes(self.stack.overlap) else healthy
        seconds = breakdown_of(step.graph, step.costs, timing, stage, factor)
        several = drawn or self.conditions.storage is not None
        if several and step.program.layout.data_parallel is not DataParallel.LOCAL_SGD:
            # The mean step has the shares of the one that was drawn last, or writes a checkpoint.
            mean = step_time / timing.step_time
            seconds = {kind: mean * value for kind, value in seconds.items()}
        else:
            # That of local SGD averages parameters, at its end, only one time in sync_every.
            seconds[Category.DATA_COMM] -= timing.step_time - step_time
        return Breakdown(stage=stage, seconds=seconds)

    def _machine_notes(
        self, layout: ParallelLayout, memory: Sequence[MemoryUse]
    ) -> tuple[str, ...]:
        """Return what to know of each kind of machine: its host memory, its calibration."""
        notes: list[str] = []
        for machine in self._machines:
            notes += host_warnings(layout, machine.stack, machine.profile, memory)
            notes += software_notes(machine.stack, machine.profile.constants.software)
        return tuple(dict.fromkeys(notes))

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

    @property
    def peak_flops(self) -> float:
        """Dense peak of one accelerator in FLOP/s; in a mixed cluster the mean of all."""
        if self.conditions.parts:
            return mean_peak(self.conditions.parts, self.job.precision)
        return float(self.profile.accelerator.peak[self.job.precision])

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
        if self.mixed is None:
            return provenance_of(self.model, self.job, self.stack, self.profile)
        return self.mixed.provenance(
            [
                provenance_of(self.model, self.job, machine.stack, machine.profile)
                for machine in self.mixed.machines
            ]
        )
