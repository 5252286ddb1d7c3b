"""A scenario file: a model, a cluster, a job, and the layout to simulate or space to search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from simulator.errors import InputError, Problem
from simulator.files import FileRecord, is_there, read_record
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import Profile, load_profile
from simulator.parallel.layout import (
    ContextExchange,
    ParallelLayout,
    Recompute,
    RecomputeModule,
    ScheduleName,
)
from simulator.parallel.number_checks import gpu_problem
from simulator.topology.network_file import JitterFile, NetworkFile, SlowRanks
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
    network: NetworkFile | None = None
    """Left out, a fabric that never holds up a NIC, unless the profile's is oversubscribed."""
    slow: tuple[SlowRanks, ...] = ()
    """Accelerators that are slower than the others."""
    jitter: JitterFile | None = None


class SearchFile(FileRecord):
    """The space of layouts that `plan` searches; what is left out is free."""

    tp: tuple[_Size, ...] | None = None
    """Left out, the divisors of the accelerators up to `max_tp`."""
    pp: tuple[_Size, ...] | None = None
    """Left out, the divisors of the accelerators up to the number of layers."""
    cp: tuple[_Size, ...] = (1,)
    """Context parallelism is searched only where it is asked for."""
    cp_comm_type: tuple[ContextExchange, ...] | None = None
    """How keys and values are exchanged where cp > 1."""
    cp_inner: tuple[_Size, ...] | None = None
    """For "a2a+p2p"; left out, the divisors of cp between 1 and cp."""
    ep: tuple[_Size, ...] | None = None
    """Left out, the divisors of the experts of a layer; 1 for a dense model."""
    etp: tuple[_Size, ...] | None = None
    """Left out, 1 and tp."""
    vpp: tuple[_Size, ...] | None = None
    """Left out, the divisors of the layers of a stage."""
    micro_batch_size: tuple[_Size, ...] | None = None
    """Left out, the divisors of the batch of a replica."""
    microbatch_group_size: tuple[_Size, ...] | None = None
    """Of the interleaved schedule; left out, pp."""
    extra_warm_up: tuple[Annotated[int, Field(ge=0, le=1024)], ...] = (0,)
    """Of the 1f1b and interleaved schedules."""
    zero_stage: tuple[Annotated[int, Field(ge=0, le=3)], ...] | None = None
    """Left out, those of the stack."""
    recompute: tuple[Recompute, ...] = tuple(Recompute)
    """Left out, all three."""
    recompute_modules: tuple[tuple[RecomputeModule, ...], ...] | None = None
    """Sets of modules of selective recomputation; left out, the attention core ([]), and for
    experts or latent attention once more what is cheap to compute again."""
    recompute_num_layers: tuple[_Size | Literal["all"], ...] = ("all",)
    """Layers of a virtual stage that full recomputation recomputes."""
    offload_layers: tuple[Annotated[int, Field(ge=0, le=10**4)], ...] = (0,)
    """Layers whose activations wait in host memory; searched only where asked for."""
    optimizer_offload: tuple[Annotated[float, Field(ge=0, le=1)], ...] = (0.0,)
    """Shares of the optimizer on the host; searched only where asked for."""
    sequence_parallel: tuple[bool, ...] = (False, True)
    """Where tp > 1."""
    schedule: tuple[ScheduleName, ...] | None = None
    """Left out, those of the stack but "gpipe" and "csv"."""
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
    file = _at_folder(read_record(ScenarioFile, path), Path(path).parent)
    return resolve_scenario(file, str(path), Path(path).parent)


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


def _at_folder(file: ScenarioFile, folder: Path) -> ScenarioFile:
    """Return a scenario whose schedule and network files, relative to `folder`, are found here."""
    changes: dict[str, Any] = {}
    layout, network = file.layout, file.cluster.network
    if layout is not None and layout.schedule_file is not None:
        found = str(folder / layout.schedule_file)
        changes["layout"] = layout.model_copy(update={"schedule_file": found})
    if network is not None:
        moved = network.model_copy(update=_network_files(network, folder))
        changes["cluster"] = file.cluster.model_copy(update={"network": moved})
    return file.model_copy(update=changes) if changes else file


def _network_files(network: NetworkFile, folder: Path) -> dict[str, str]:
    """Return the keys of a network that name files, with their paths from here."""
    found = {} if network.topology is None else {"topology": str(folder / network.topology)}
    if is_there(folder / network.rank_order):
        found["rank_order"] = str(folder / network.rank_order)
    return found


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
    has_fp4 = Dtype.FP4 in profile.accelerator.peak
    wanted = gpu_problem(precision, scenario.file.job.recipe, has_fp4=has_fp4)
    if wanted is not None:
        yield replace(wanted, where=scenario.where)
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
