"""What passes between a scenario and the files of a framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from simulator.parallel.layout import ParallelLayout
from simulator.workload.job import TrainingJob
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack

BF16_BYTES = 2.0
"""Of a gradient in bf16."""


class Tool(StrEnum):
    """A framework whose launch files are written and read."""

    MEGATRON_LM = "megatron-lm"
    MEGATRON_BRIDGE = "megatron-bridge"
    TORCHTITAN = "torchtitan"
    DEEPSPEED = "deepspeed"
    NANOTRON = "nanotron"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One training run as a framework is told it."""

    model: ModelSpec
    job: TrainingJob
    layout: ParallelLayout
    stack: Stack
    nodes: int
    gpus_per_node: int
    where: str = ""
    """File that the run comes from."""

    @property
    def world_size(self) -> int:
        """Processes in all."""
        return self.nodes * self.gpus_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFile:
    """One file of a launch."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything that starts one run."""

    tool: Tool
    files: tuple[LaunchFile, ...]
    fill: tuple[str, ...]
    """Placeholders in the files that only the user can fill."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What launch files do not say."""

    cluster: str | None = None
    """Profile; no launch file names a machine."""
    nodes: int | None = None
    """None: what the files say."""
    model: str | None = None
    """A shipped model or a file, for files that name none."""
    seq_length: int | None = None
    """For files that say none."""
    stack: str | None = None
    """None: the tool's own."""
    ignore: frozenset[str] = frozenset()
    """Keys that the user vouches for: they change neither compute nor memory."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values of shell variables that scripts use and do not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Files to read, and what is known beside them."""

    files: tuple[LaunchFile, ...]
    options: ImportOptions
    gpus_per_node: int | None
    """Of the profile; None where none is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What launch files say, in the words of a scenario."""

    model: str | Mapping[str, Any]
    """A shipped model or file, or the fields of a model."""
    job: Mapping[str, Any]
    layout: Mapping[str, Any]
    stack: str
    stack_changes: Mapping[str, Any] = field(default_factory=dict)
    """Keys such as "overlap.gradient_reduce" where the run does not do as its stack."""
    nodes: int
    gpus_per_node: int
    read: tuple[str, ...]
    """Keys that the forecast follows."""
    unused: tuple[str, ...]
    """Keys that do not change the forecast."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A scenario made of launch files; `files` go beside it and it names them."""

    tool: Tool
    scenario: str
    """Text of the scenario file."""
    files: tuple[LaunchFile, ...]
    read: tuple[str, ...]
    unused: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One line of a tool's reference table."""

    name: str
    """As the tool's files spell it."""
    key: str
    """Of the scenario, or of its model or stack."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEntry:
    """How one framework's files are written and read."""

    title: str
    version: str
    """Of the framework, whose argument checks were read."""
    stacks: tuple[str, ...]
    """Shipped stacks that describe it; the first is that of an import."""
    write: Callable[[Run], Launch]
    read: Callable[[Given], Draft]
    recognise: Callable[[LaunchFile], bool]
    """Whether a file is one of the tool's."""
    arguments: tuple[Argument, ...]
    unsaid: Mapping[str, str] = field(default_factory=dict)
    """Key of a scenario -> why the tool's files cannot say some of its values."""
