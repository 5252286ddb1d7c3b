"""What an importer is told besides the file, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from calibrate.records import Header, Record
from simulator.errors import Problem
from simulator.parallel.groups import Collective
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack

Companion: TypeAlias = ModelSpec | Stack
"""What a step point names by its path because it is not shipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What a user says where files do not; what a file says itself counts more.

    Only `accelerator` counts more than the file: drivers name prototypes "Graphics Device".
    """

    collective: Collective | None = None
    ranks: int | None = None
    """Of one group."""
    nodes: int | None = None
    """That one group spans."""
    per_node: int | None = None
    """Ranks on each node."""
    bytes: float | None = None
    """Size of collectives in tables without such a column."""
    accelerator: str | None = None
    line_rate: float | None = None
    """Bytes/s of the slowest link of a rank; bus bandwidths far above it are rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """One file as calibration lines."""

    kind: str
    """What the file was taken for, in words."""
    lines: tuple[Header | Record, ...]
    notes: tuple[Problem, ...] = ()
    """What was left out, derived or flagged, each with its line."""
    files: tuple[tuple[str, Companion], ...] = ()
    """Models and stacks that step points name, by their path beside the calibration file."""

    @property
    def records(self) -> tuple[Record, ...]:
        """The lines without headers."""
        return tuple(line for line in self.lines if isinstance(line, Record))
