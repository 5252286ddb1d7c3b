"""One kind of machine of a cluster: the programs, costs and memory of a job on it."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.cost.memories import Memories
from simulator.cost.network.network import Network
from simulator.cost.step_costs import StepCosts
from simulator.hardware.profile import Profile
from simulator.parallel.numbers import with_dtypes
from simulator.parallel.program import Programs
from simulator.workload.calibrated import with_software
from simulator.workload.job import TrainingJob
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack


@dataclass(frozen=True, kw_only=True, eq=False)
class Machine:
    """A profile with the caches of all that is computed for one job on it."""

    profile: Profile
    stack: Stack
    """With the job's dtypes, and with what was measured on this machine."""
    costs: StepCosts
    memories: Memories
    programs: Programs

    @classmethod
    def of(
        cls,
        model: ModelSpec,
        job: TrainingJob,
        stack: Stack,
        profile: Profile,
        network: Network | None = None,
    ) -> Machine:
        """Return the machine of a profile; `network` is that of its cluster, where one is given."""
        own = with_software(with_dtypes(stack, job), profile.constants.software)
        costs = StepCosts(model, job, own, profile, network=network)
        programs = Programs(
            model,
            job,
            own,
            profile.node.scale_up.domain_size if network is None else network.domains,
            transposes=profile.accelerator.fp8_needs_transposes,
        )
        memories = Memories(costs, programs)
        return cls(profile=profile, stack=own, costs=costs, memories=memories, programs=programs)
