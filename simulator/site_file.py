"""A site file: what a Slurm cluster needs to know to start a run; nothing in it is guessed."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from simulator.errors import InputError, Problem
from simulator.files import FileRecord, read_record

_DIRECTIVE = re.compile(r"[A-Za-z0-9_.,:/@%+=&|()\[\]*!~-]+")
"""What a value of an #SBATCH line may hold: Slurm's own syntax, and nothing that ends the word."""
_TIME = re.compile(r"(\d+-)?\d+(:\d{2}){0,2}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_PORT = 65535


def _directive(text: str) -> str:
    if not _DIRECTIVE.fullmatch(text):
        raise ValueError(
            "must be one word of letters, digits and . , : / @ % + = & | ( ) [ ] * ! -"
        )
    return text


def _line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("must be one line without control characters")
    return text


def _time(text: str) -> str:
    if not _TIME.fullmatch(text):
        raise ValueError('must be a time as Slurm reads it, such as "00:30:00" or "1-12:00:00"')
    return text


def _variables(variables: dict[str, str]) -> dict[str, str]:
    for name, value in variables.items():
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a variable")
        if value and not value.isprintable():
            raise ValueError(f"the value of {name} must be one line without control characters")
    return variables


Directive = Annotated[str, AfterValidator(_directive)]
Words = Annotated[str, AfterValidator(_line)]


class GpuRequest(StrEnum):
    """How a site wants accelerators to be asked for."""

    GRES = "gres"
    """--gres=gpu:N, or --gres=gpu:TYPE:N with `gpu_type`."""
    PER_NODE = "gpus-per-node"
    """--gpus-per-node=N."""
    PER_TASK = "gpus-per-task"
    """--gpus-per-task=1: each process sees its own alone."""
    NONE = "none"
    """Not at all: nodes are given whole, or have none."""


class Container(FileRecord):
    """An enroot container, started by the pyxis plugin."""

    image: Words
    mounts: tuple[Words, ...] = ()
    """As pyxis takes them: "/from:/to" or "/from:/to:ro"."""


class Site(FileRecord):
    """A job on a Slurm cluster."""

    partition: Directive
    nodes: int = Field(ge=1)
    gpus_per_node: int = Field(ge=0)
    time: Annotated[str, AfterValidator(_time)]
    gpus: GpuRequest
    account: Directive | None = None
    qos: Directive | None = None
    constraint: Directive | None = None
    gpu_type: Directive | None = None
    ranks_per_node: int | None = Field(default=None, ge=1)
    """None is one an accelerator; needed where `gpus_per_node` is 0."""
    cpus_per_task: int | None = Field(default=None, ge=1)
    exclusive: bool = False
    port: int | None = Field(default=None, ge=1024, le=_MAX_PORT)
    """On which the ranks meet; None is made from the job's number."""
    container: Container | None = None
    modules: tuple[Words, ...] = ()
    """For `module load`, in this order."""
    environment: Annotated[dict[str, str], AfterValidator(_variables)] = Field(default_factory=dict)
    """Variables such as NCCL_*."""
    setup: tuple[Words, ...] = ()
    """Lines of shell that are run as they are on the first node before srun."""
    python: Words | None = None
    """The interpreter that has traincast and torch; None is `python3`. Only for calibration."""

    @property
    def ranks(self) -> int:
        """Processes a node."""
        return self.ranks_per_node or self.gpus_per_node


def read_site(path: Path | str) -> Site:
    """Return a site file.

    Raises:
        InputError: everything that is wrong in it, or missing.
    """
    site = read_record(Site, path)
    if site.ranks == 0:
        rule = "must be given where gpus_per_node is 0: processes a node"
        raise InputError(Problem(where=str(path), key="ranks_per_node", rule=rule))
    if site.gpu_type is not None and site.gpus is not GpuRequest.GRES:
        rule, fix = 'needs gpus = "gres"', "leave it out, or use constraint"
        raise InputError(Problem(where=str(path), key="gpu_type", rule=rule, fix=fix))
    return site
