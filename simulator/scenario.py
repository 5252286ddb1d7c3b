"""A scenario file: a model, a cluster, a job, and the layout to simulate or space to search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from simulator.aims import MAX_CHANGES, LayoutChoice, Objective, UncertaintyFile, WhatIfFile
from simulator.errors import InputError, Problem
from simulator.files import FileRecord, is_there, read_record
from simulator.hardware.accelerator import Dtype
from simulator.hardware.parts import Part, kinds
from simulator.hardware.parts_checks import (
    part_problems,
    precision_problems,
    uniform_problem,
)
from simulator.hardware.profile import Profile, load_profile
from simulator.list_rules import at_most, each_once
from simulator.parallel.forbidden import ForbiddenLayout
from simulator.parallel.layout import (
    Axis,
    ContextExchange,
    ParallelLayout,
    Recompute,
    RecomputeModule,
    ScheduleName,
)
from simulator.parallel.number_checks import gpu_problem
from simulator.run_file import RunFile
from simulator.topology.network_file import JitterFile, NetworkFile, SlowRanks
from simulator.units import Seconds
from simulator.workload.job import TrainingJob
from simulator.workload.load import load_model
from simulator.workload.model import ImportedModel
from simulator.workload.stack import Stack, load_stack

DEFAULT_TOP = 10
DEFAULT_SIMULATED = 3
MAX_ACCELERATORS = 10**6
MAX_PARTS = 64
"""Kinds of machine in one cluster, many more than one has; 2,000 took 15 s to read."""
_Size = Annotated[int, Field(ge=1, le=1024)]
_GroupAxis = Literal[
    Axis.TENSOR, Axis.CONTEXT, Axis.DATA, Axis.EXPERT, Axis.EXPERT_TENSOR, Axis.EXPERT_DATA
]


class Named(StrEnum):
    """What a scenario names and does not hold itself."""

    MODEL = "model"
    STACK = "stack"
    PROFILE = "profile"


LoadNamed = Callable[[Named, str, Path | None], Any]
_LOADERS: Mapping[Named, Callable[..., Any]] = {
    Named.MODEL: load_model,
    Named.STACK: load_stack,
    Named.PROFILE: load_profile,
}


class PartFile(FileRecord):
    """Further nodes of a cluster, of another machine."""

    profile: str
    """A shipped profile or a .toml file."""
    nodes: int = Field(ge=1, le=10**6)


class ClusterFile(FileRecord):
    """The machine: a profile and how many nodes of it."""

    profile: str
    """A shipped profile or a .toml file."""
    nodes: int = Field(ge=1, le=10**6)
    part: tuple[PartFile, ...] = ()
    """Nodes of other machines that stand behind them: a cluster of mixed generations."""
    network: NetworkFile | None = None
    """Left out, a fabric that never holds up a NIC, unless the profile's is oversubscribed."""
    slow: tuple[SlowRanks, ...] = ()
    """Accelerators that are slower than the others."""
    jitter: JitterFile | None = None

    @field_validator("part")
    @classmethod
    def _is_a_few(cls, value: tuple[PartFile, ...]) -> tuple[PartFile, ...]:
        at_most(value, MAX_PARTS)
        return value


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
    nodes: tuple[Annotated[int, Field(ge=1, le=10**6)], ...] | None = None
    """Sizes of the cluster; left out, that of the cluster table."""
    global_batch_size: tuple[Annotated[int, Field(ge=1, le=10**7)], ...] | None = None
    """Batches; left out, that of the job."""
    precision: tuple[Dtype, ...] | None = None
    """Of the matrix products; left out, that of the job. Any other has its default recipe."""
    rank_order: tuple[str, ...] | None = None
    """Places of the ranks on `cluster.network`: "block", "cyclic", "plane=N" or files; left out,
    that of the network."""
    max_tp: int | None = Field(default=None, ge=1)
    """None: the size of the scale-up domain."""
    dp: tuple[Annotated[int, Field(ge=1, le=10**6)], ...] | None = None
    """Left out, what fills the cluster, whatever it is."""
    dp_multiple_of: int = Field(default=1, ge=1, le=10**6)
    """What dp must be a multiple of."""
    within_domain: tuple[_GroupAxis, ...] = ()
    """Axes whose groups must each stay in one scale-up domain."""
    forbid: tuple[ForbiddenLayout, ...] = ()
    """Layouts that must not be: those with all values of one of the entries."""
    time_limit: Seconds | None = None
    """After that long the best layouts found so far are taken, with how much better any other
    could be; left out, the search ends when none can be."""
    max_estimates: int | None = Field(default=None, ge=1)
    """Layouts whose step time is computed exactly before the search is cut short likewise."""
    memory_fraction: float = Field(default=0.94, gt=0, le=1)
    """Share of the device memory that a layout may reserve."""
    objective: Objective = Objective.STEP_TIME
    """What the best layout has least of."""
    max_days: float | None = Field(default=None, gt=0)
    """Longest time for all of `job.tokens`, without failures."""
    max_cost: float | None = Field(default=None, gt=0)
    """Highest price of all of `job.tokens`, without failures, in the profile's currency."""
    pareto: tuple[Objective, Objective] | None = None
    """Two objectives: the plan then also lists every layout that nothing beats in both."""
    choice: LayoutChoice = LayoutChoice.CENTRE
    """Which layout is put first: "robust" draws the uncertain constants."""
    top: int = Field(default=DEFAULT_TOP, ge=1, le=1000)
    """Layouts to return."""
    simulate: int = Field(default=DEFAULT_SIMULATED, ge=1, le=1000)
    """Of those the best, which the event engine plays, and more until the fastest is certain; the
    others keep their estimate."""

    @field_validator("*")
    @classmethod
    def _names_each_once(cls, value: Any, info: ValidationInfo) -> Any:
        listed = isinstance(value, tuple) and info.field_name != "pareto"
        return each_once(value) if listed else value


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
    run: RunFile | None = None
    """What `goodput`, and `plan` beside its layouts, make a plan of the whole run from."""
    uncertainty: UncertaintyFile | None = None
    """Left out, constants are drawn only for a robust choice."""
    what_if: tuple[WhatIfFile, ...] = ()
    """Changes that `explain` tries beside its own."""

    @field_validator("what_if")
    @classmethod
    def _are_a_few_with_own_names(cls, value: tuple[WhatIfFile, ...]) -> tuple[WhatIfFile, ...]:
        at_most(value, MAX_CHANGES)
        each_once(tuple(entry.name for entry in value))
        return value


class Scenario(FileRecord):
    """A scenario with everything it names read in."""

    file: ScenarioFile
    where: str
    model: ImportedModel
    stack: Stack
    profile: Profile
    """Of the cluster's first part."""
    others: tuple[Profile, ...] = ()
    """Of its other parts, if it has any."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the cluster, in node order: mostly one."""
        first = Part(profile=self.profile, nodes=self.file.cluster.nodes)
        pairs = zip(self.others, self.file.cluster.part, strict=True)
        return first, *(Part(profile=profile, nodes=file.nodes) for profile, file in pairs)

    @property
    def mixed(self) -> bool:
        """Whether the cluster has machines of several kinds."""
        return len(kinds(self.parts)) > 1

    @property
    def world_size(self) -> int:
        """Accelerators of the cluster."""
        return sum(part.accelerators for part in self.parts)

    @property
    def title(self) -> str:
        """What the scenario is called."""
        return self.file.title or f"{self.model.spec.name} on {self.world_size} accelerators"


def load_scenario(path: Path | str) -> Scenario:
    """Return the scenario in a TOML file; files it names are found relative to it.

    Raises:
        InputError: with everything that is wrong in the scenario, or in a file that it names.
    """
    file = at_folder(read_record(ScenarioFile, path), Path(path).parent)
    return resolve_scenario(file, str(path), Path(path).parent)


def resolve_scenario(file: ScenarioFile, where: str, folder: Path | None = None) -> Scenario:
    """Return `file` with its model, stack and profile read in."""
    scenario = read_parts(file, where, folder)
    if problems := tuple(machine_problems(scenario)):
        raise InputError(*problems)
    return scenario


def load_named(named: Named, name: str, folder: Path | None) -> Any:
    """Return a model, stack or profile by its name, or from its file relative to `folder`."""
    return _LOADERS[named](name, relative_to=folder)


def read_parts(
    file: ScenarioFile, where: str, folder: Path | None = None, load: LoadNamed = load_named
) -> Scenario:
    """Return `file` with its parts read in; whether they fit together is not checked."""
    problems: list[Problem] = []
    loaded: list[Any] = []
    parts = enumerate(file.cluster.part)
    for named, key, name in (
        (Named.MODEL, "model", file.model),
        (Named.STACK, "job.stack", file.job.stack),
        (Named.PROFILE, "cluster.profile", file.cluster.profile),
        *((Named.PROFILE, f"cluster.part.{i}.profile", part.profile) for i, part in parts),
    ):
        try:
            loaded.append(load(named, name, folder))
        except InputError as error:
            problems += (_at_key(problem, where, key, name) for problem in error.problems)
    if problems:
        raise InputError(*problems)
    model, stack, profile, *others = loaded
    return Scenario(
        file=file, where=where, model=model, stack=stack, profile=profile, others=tuple(others)
    )


def at_folder(file: ScenarioFile, folder: Path) -> ScenarioFile:
    """Return a scenario whose schedule and network files, relative to `folder`, are found here."""
    changes: dict[str, Any] = {}
    layout, network = file.layout, file.cluster.network
    if layout is not None and layout.schedule_file is not None:
        found = str(folder / layout.schedule_file)
        changes["layout"] = layout.model_copy(update={"schedule_file": found})
    if network is not None:
        moved = network.model_copy(update=_network_files(network, folder))
        changes["cluster"] = file.cluster.model_copy(update={"network": moved})
    orders = file.search.rank_order
    if orders is not None:
        here = tuple(str(folder / o) if is_there(folder / o) else o for o in orders)
        changes["search"] = file.search.model_copy(update={"rank_order": here})
    if file.run is not None:
        changes["run"] = _run_files(file.run, folder)
    return file.model_copy(update=changes) if changes else file


def _network_files(network: NetworkFile, folder: Path) -> dict[str, str]:
    """Return the keys of a network that name files, with their paths from here."""
    found = {} if network.topology is None else {"topology": str(folder / network.topology)}
    if is_there(folder / network.rank_order):
        found["rank_order"] = str(folder / network.rank_order)
    return found


def _run_files(run: RunFile, folder: Path) -> RunFile:
    """Return a run whose failure rates and power model, where they are files, are found here."""
    changes: dict[str, Any] = {}
    if run.failures is not None:
        rates = tuple(_here(name, folder) for name in run.failures.rates)
        changes["failures"] = run.failures.model_copy(update={"rates": rates})
    model = _here(run.energy.power_model, folder)
    changes["energy"] = run.energy.model_copy(update={"power_model": model})
    return run.model_copy(update=changes)


def _here(name: str, folder: Path) -> str:
    """Return the path from here of a file named relative to `folder`; a shipped name stays."""
    return str(folder / name) if name.endswith(".toml") else name


def _at_key(problem: Problem, where: str, key: str, name: str) -> Problem:
    """Return a problem with a name, not with a key of the file it names, as the scenario's."""
    if problem.key or not name.startswith(problem.where):
        return problem
    return replace(problem, where=where, key=key, found=repr(problem.where))


def machine_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield what the scenario asks of its machine that the profile does not have."""
    profile, precision = scenario.profile, scenario.file.job.precision
    yield from part_problems(scenario.parts, scenario.where)
    yield from precision_problems(scenario.parts, precision, scenario.where)
    yield from _uniform_problems(scenario)
    has_fp4 = all(Dtype.FP4 in part.profile.accelerator.peak for part in scenario.parts)
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


def _uniform_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield what a scenario of a mixed cluster asks for that is offered for uniform ones only."""
    file, parts = scenario.file, scenario.parts
    asked = {
        "search.nodes": (file.search.nodes is not None, "a search over sizes"),
        "search.choice": (file.search.choice is LayoutChoice.ROBUST, "the robust choice"),
        "uncertainty": (file.uncertainty is not None, "drawing uncertain constants"),
    }
    if scenario.mixed:
        for key, (wanted, what) in asked.items():
            if wanted:
                yield uniform_problem(parts, scenario.where, key, what)
