"""Forecasts of a cluster of several kinds of machines: who stands where, at what cost and room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from simulator.asymmetry import Paces, paces_of
from simulator.conditions import Conditions
from simulator.cost.host_notes import host_capacity
from simulator.cost.interference import interferes
from simulator.cost.machine import Machine
from simulator.cost.mixed import Standing, mixed_costs
from simulator.cost.network.network import Network
from simulator.cost.network.routed import limited_costs
from simulator.cost.plan import LinkKind
from simulator.cost.priced import WorkCost
from simulator.estimate import estimate_step_time
from simulator.hardware.parts import kinds, parts_words, peak_words
from simulator.hardware.profile import Profile
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.program import StepProgram
from simulator.results import MemoryUse, Provenance
from simulator.schedule.tasks import TaskGraph, Work
from simulator.workload.calibrated import relative_spread


class Mixed:
    """The machines of a mixed cluster, and what a layout costs and needs on them."""

    def __init__(self, machines: Sequence[Machine], conditions: Conditions) -> None:
        assert len(machines) == len(kinds(conditions.parts)), "one machine a kind"
        self.machines, self.conditions = tuple(machines), conditions

    def stage_kinds(self, layout: ParallelLayout) -> tuple[tuple[int, ...], ...]:
        """Return for each stage the numbers of the machines that its ranks run on."""
        of_rank = self.conditions.kind_of_ranks.reshape(layout.pp, -1)
        return tuple(tuple(sorted(set(row.tolist()))) for row in of_rank)

    def costs(
        self, program: StepProgram, works: tuple[Work, ...], paces: Paces
    ) -> tuple[tuple[WorkCost, ...], ...]:
        """Return [class][work] the costs where nothing behind the NICs holds anything up."""
        layout = program.layout
        programs = [machine.programs.of(layout) for machine in self.machines]

        def price(kind: int, work: Work) -> WorkCost:
            return self.machines[kind].costs.work(programs[kind], work)

        return mixed_costs(works, layout.pipeline, paces.standing, price)

    def estimated(self, program: StepProgram, graph: TaskGraph) -> Sequence[WorkCost]:
        """Return the costs of the class of sound replicas whose step takes longest by itself."""
        layout, network = program.layout, self.conditions.network
        paces = paces_of(layout, {}, apart=False, kinds=self.conditions.kind_of_ranks)
        rows = self.costs(program, graph.works, paces)
        limited = [self._limited(network, program, graph.works, row) for row in rows]
        if len(limited) == 1:
            return limited[0]
        return max(limited, key=lambda row: estimate_step_time(graph, row))

    def memory(self, layout: ParallelLayout) -> tuple[tuple[MemoryUse, float], ...]:
        """Return for each stage the memory of a rank and its accelerator's capacity, in bytes.

        Of a stage on several machines it is the one with the largest share of its memory in use.
        """
        return tuple((use, _room(self.machines[kind])) for use, kind in self._fullest(layout))

    def fullest_machines(self, layout: ParallelLayout) -> tuple[Machine, ...]:
        """Return for each stage the machine whose memory `memory` says."""
        return tuple(self.machines[kind] for _, kind in self._fullest(layout))

    def _fullest(self, layout: ParallelLayout) -> Iterator[tuple[MemoryUse, int]]:
        uses, room = self._uses(layout), [_room(machine) for machine in self.machines]
        for stage, held in enumerate(self.stage_kinds(layout)):
            shares = {kind: uses[kind][stage].reserved / room[kind] for kind in held}
            fullest = max(shares, key=shares.__getitem__)
            yield uses[fullest][stage], fullest

    def _uses(self, layout: ParallelLayout) -> Sequence[tuple[MemoryUse, ...]]:
        """Return by machine the memory of each stage: once for all that hold the same."""
        first, *others = self.machines
        held = first.memories.of_stages(first.programs.of(layout))
        return [held] + [
            held
            if each.programs.transposes == first.programs.transposes
            else each.memories.of_stages(each.programs.of(layout))
            for each in others
        ]

    def link_rates(self, stands: Standing) -> Mapping[LinkKind, float]:
        """Return the nominal bytes/s of a rank's links where a stage stands: the slowest."""
        rates = [nominal_rates(self.machines[kind].profile) for kind, _ in stands]
        return {link: min(each[link] for each in rates) for link in LinkKind}

    @property
    def largest_memory(self) -> float:
        """Bytes of the largest accelerator."""
        return max(map(_room, self.machines))

    @property
    def smallest_host(self) -> float:
        """Bytes of host memory of an accelerator's share of a node, where that is least."""
        return min(host_capacity(machine.profile) for machine in self.machines)

    def spread(self) -> float:
        """Return the widest relative half-width of the machines' 80 % intervals."""
        return max(
            relative_spread(
                machine.stack, machine.profile.constants.software, machine.profile.constants.spread
            )
            for machine in self.machines
        )

    def provenance(self, each: Sequence[Provenance]) -> Provenance:
        """Return what a forecast is computed from, of what it would be on each machine alone."""
        names = [machine.profile.name for machine in self.machines]
        constants = {
            f"{name}: {block}": origin
            for name, one in zip(names, each, strict=True)
            for block, origin in one.constants.items()
        }
        warnings = dict.fromkeys(warning for one in each for warning in one.warnings)
        return replace(
            each[0],
            profile=" + ".join(names),
            profile_sha256=" + ".join(one.profile_sha256 for one in each),
            constants=constants,
            used=tuple(
                f"{name}: {block}"
                for name, one in zip(names, each, strict=True)
                for block in one.used
            ),
            validation="; ".join(dict.fromkeys(one.validation for one in each)),
            warnings=(*warnings, *self._notes()),
        )

    def _notes(self) -> tuple[str, ...]:
        """Return what to know of any forecast of this cluster."""
        parts, precision = self.conditions.parts, self.machines[0].costs.job.precision
        notes = [
            f"the cluster is mixed, {parts_words(parts)}: MFU is against the sum of the peaks, "
            + peak_words(parts, precision)
        ]
        overlaps = [machine.stack.overlap for machine in self.machines]
        if any(overlap != overlaps[0] for overlap in overlaps) and any(map(interferes, overlaps)):
            notes.append(
                "how much communication and compute slow each other is taken from "
                f"{self.machines[0].profile.name} for all parts"
            )
        return tuple(notes)

    def _limited(
        self,
        network: Network | None,
        program: StepProgram,
        works: tuple[Work, ...],
        row: Sequence[WorkCost],
    ) -> Sequence[WorkCost]:
        return row if network is None else limited_costs(network, program, works, row)


def _room(machine: Machine) -> float:
    """Return the bytes of memory of a machine's accelerator."""
    return float(machine.profile.accelerator.memory)


def nominal_rates(profile: Profile) -> Mapping[LinkKind, float]:
    """Return the nominal bytes/s of each kind of link of one rank of a machine."""
    return {
        LinkKind.SCALE_UP: profile.node.scale_up.bandwidth,
        LinkKind.SCALE_OUT: profile.nic_bandwidth if profile.node.nic else 0.0,
        LinkKind.HOST: profile.node.host.pcie_bandwidth,
    }
