"""A scenario file: a model on a cluster, a job, and the layout to simulate or the space to search."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from simulator.errors import InputError, Problem
from simulator.files import FileRecord, read_record
from simulator.hardware.profile import Profile, load_profile
from simulator.parallel.layout import ParallelLayout, Recompute, ScheduleName
from simulator.workload.job import TrainingJob
from simulator.workload.model import ImportedModel
from simulator.workload.load import load_model
from simulator.workload.stack import Stack, load_stack

DEFAULT_TOP = 10


class ClusterFile(FileRecord):
    """The machine: a profile and how many nodes of it."""

    profile: str
    """A shipped profile or a .toml file."""
    nodes: int = Field(ge=1, le=10**6)


class SearchFile(FileRecord):
    """The space of layouts that `plan` searches; what is left out is free."""

    tp: tuple[int, ...] | None = None
    pp: tuple[int, ...] | None = None
    cp: tuple[int, ...] = (1,)
    vpp: tuple[int, ...] | None = None
    micro_batch_size: tuple[int, ...] | None = None
    zero_stage: tuple[int, ...] | None = None
    recompute: tuple[Recompute, ...] = tuple(Recompute)
    sequence_parallel: tuple[bool, ...] = (False, True)
    schedule: tuple[ScheduleName, ...] = (ScheduleName.ONE_F_ONE_B, ScheduleName.INTERLEAVED)
    max_tp: int | None = Field(default=None, ge=1)
    """None: the size of the scale-up domain."""
    memory_fraction: float = Field(default=0.94, gt=0, le=1)
    """Share of the device memory that a layout may reserve."""
    top: int = Field(default=DEFAULT_TOP, ge=1, le=1000)
    """Layouts to return."""


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
    loaded = []
    for load, name in (
        (load_model, file.model),
        (load_stack, file.job.stack),
        (load_profile, file.cluster.profile),
    ):
        try:
            loaded.append(load(name, relative_to=folder))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)
    model, stack, profile = loaded
    return Scenario(file=file, where=where, model=model, stack=stack, profile=profile)
