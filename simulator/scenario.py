"""A scenario file: a model, a cluster, a job, and the layout to simulate or space to search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from simulator.errors import InputError, Problem
from simulator.files import FileRecord, read_record
from simulator.hardware.profile import Profile, load_profile
from simulator.parallel.layout import ParallelLayout, Recompute, ScheduleName
from simulator.workload.job import TrainingJob
from simulator.workload.load import load_model
from simulator.workload.model import ImportedModel
from simulator.workload.stack import Stack, load_stack

DEFAULT_TOP = 10
DEFAULT_SIMULATED = 3
MAX_ACCELERATORS = 10**6
_Size = Annotated[int, Field(ge=1, le=1024)]


class ClusterFile(FileRecord):
    """The machine: a profile and how many nodes of it."""

    profile: str
    """A shipped profile or a .toml file."""
    nodes: int = Field(ge=1, le=10**6)


class SearchFile(FileRecord):
    """The space of layouts that `plan` searches; what is left out is free."""

    tp: tuple[_Size, ...] | None = None
    pp: tuple[_Size, ...] | None = None
    cp: tuple[_Size, ...] = (1,)
    vpp: tuple[_Size, ...] | None = None
    micro_batch_size: tuple[_Size, ...] | None = None
    zero_stage: tuple[Annotated[int, Field(ge=0, le=3)], ...] | None = None
    recompute: tuple[Recompute, ...] = tuple(Recompute)
    sequence_parallel: tuple[bool, ...] = (False, True)
    schedule: tuple[ScheduleName, ...] = (ScheduleName.ONE_F_ONE_B, ScheduleName.INTERLEAVED)
    max_tp: int | None = Field(default=None, ge=1)
    """None: the size of the scale-up domain."""
    memory_fraction: float = Field(default=0.94, gt=0, le=1)
    """Share of the device memory that a layout may reserve."""
    top: int = Field(default=DEFAULT_TOP, ge=1, le=1000)
    """Layouts to return."""
    simulate: int = Field(default=DEFAULT_SIMULATED, ge=1, le=1000)
    """Of those the best, which the event engine plays, and more until the fastest is certain; the
    others keep their estimate."""


class ScenarioFile(FileRecord):
    """A scenario as it stands in its TOML file."""

    title: str = ""
    model: str
    """A preset, an own .toml, or a Hugging Face config.json."""
    cluster: ClusterFile
    job: TrainingJob
    layout: ParallelLayout | None = None
    """What `simulate` simulates; dp may be left out, and is then what fills the cluster."""
    search: SearchFile = SearchFile()


class Scenario(FileRecord):
    """A scenario with everything it names read in."""

    file: ScenarioFile
    where: str
    model: ImportedModel
    stack: Stack
    profile: Profile

    @property
    def world_size(self) -> int:
        """Accelerators of the cluster."""
        return self.file.cluster.nodes * self.profile.node.accelerators

    @property
    def title(self) -> str:
        """What the scenario is called."""
        return self.file.title or f"{self.model.spec.name} on {self.world_size} accelerators"


def load_scenario(path: Path | str) -> Scenario:
    """Return the scenario in a TOML file; files it names are found relative to it.

    Raises:
        InputError: with everything that is wrong in the scenario, or in a file that it names.
    """
    return resolve_scenario(read_record(ScenarioFile, path), str(path), Path(path).parent)


def resolve_scenario(file: ScenarioFile, where: str, folder: Path | None = None) -> Scenario:
    """Return `file` with its model, stack and profile read in."""
    problems: list[Problem] = []
    loaded: list[Any] = []
    for load, key, name in (
        (load_model, "model", file.model),
        (load_stack, "job.stack", file.job.stack),
        (load_profile, "cluster.profile", file.cluster.profile),
    ):
        try:
            loaded.append(load(name, relative_to=folder))
        except InputError as error:
            problems += (_at_key(problem, where, key, name) for problem in error.problems)
    if problems:
        raise InputError(*problems)
    model, stack, profile = loaded
    scenario = Scenario(file=file, where=where, model=model, stack=stack, profile=profile)
    problems += _machine_problems(scenario)
    if problems:
        raise InputError(*problems)
    return scenario


def _at_key(problem: Problem, where: str, key: str, name: str) -> Problem:
    """Return a problem with a name, not with a key of the file it names, as the scenario's."""
    if problem.key or not name.startswith(problem.where):
        return problem
    return replace(problem, where=where, key=key, found=repr(problem.where))


def _machine_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield what the scenario asks of its machine that the profile does not have."""
    profile, precision = scenario.profile, scenario.file.job.precision
    offered = [kind for kind in profile.accelerator.peak if kind in profile.constants.gemm]
    if precision not in offered:
        yield Problem(
            where=scenario.where,
            key="job.precision",
            found=precision.value,
            rule=f"{profile.name} has no peak or no constants for this precision",
            fix="one of: " + ", ".join(sorted(offered)),
        )
    if scenario.world_size > MAX_ACCELERATORS:
        yield Problem(
            where=scenario.where,
            key="cluster.nodes",
            found=f"{scenario.world_size} accelerators",
            rule=f"at most {MAX_ACCELERATORS} accelerators are modelled",
            fix=f"at most {MAX_ACCELERATORS // profile.node.accelerators} nodes",
        )
    if profile.node.nic is None and scenario.world_size > profile.node.scale_up.domain_size:
        yield Problem(
            where=scenario.where,
            key="cluster.nodes",
            found=str(scenario.file.cluster.nodes),
            rule=f"{profile.name} has no NIC, so a run cannot span several nodes",
            fix="1 node, or a profile with a [node.nic] table",
        )
