"""What a scenario wants of its plan besides layouts: the aim, how sure it is, what if."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field, field_validator

from simulator.files import FileRecord

ChangeValue = bool | int | float | str
"""A new value as it would stand in a file, or "x2" for a factor on the old one."""
DEFAULT_DRAWS = 64
DEFAULT_CONTENDERS = 5
MAX_DRAWS = 10_000
"""Every draw estimates every contender again."""
MAX_CHANGES = 100
"""Changes of a scenario that `explain` tries: each plans the whole space again, so that a
thousand take minutes."""


class Objective(StrEnum):
    """What the best layout has least of; ties go to the faster layout."""

    STEP_TIME = "step_time"
    """Seconds a step; a token where `search.global_batch_size` varies."""
    DAYS = "days"
    """Days for all of `job.tokens`."""
    COST = "cost"
    """Price of a token, or of all of `job.tokens`; the profile has to have a price."""
    ENERGY = "energy"
    """Energy of a token, or of all of `job.tokens`."""
    MEMORY = "memory"
    """Reserved bytes of the fullest stage: most head-room."""
    ACCELERATORS = "accelerators"
    """Size of the cluster, where `search.nodes` varies."""


class LayoutChoice(StrEnum):
    """Which layout is put first."""

    CENTRE = "centre"
    """The best at the constants as they stand."""
    ROBUST = "robust"
    """That of least expected regret over their uncertainty."""


class UncertaintyFile(FileRecord):
    """How the uncertainty of the constants is drawn, for a robust choice."""

    draws: int = Field(default=DEFAULT_DRAWS, ge=8, le=MAX_DRAWS)
    """Joint draws of all constants (a Latin hypercube)."""
    seed: int = Field(default=0, ge=0)
    layouts: int = Field(default=DEFAULT_CONTENDERS, ge=2, le=100)
    """The best of the plan that are compared."""
    spread: dict[str, float] = Field(default_factory=dict)
    """Source of error -> standard deviation of the log of its factor (0.05 is about 5 %), in place
    of what profile, stack or the shipped table say; see the background page on uncertainty."""

    @field_validator("spread")
    @classmethod
    def _is_positive(cls, value: dict[str, float]) -> dict[str, float]:
        wrong = [name for name, sd in value.items() if not 0 <= sd <= 1]
        if wrong:
            raise ValueError(f"must be between 0 and 1: {', '.join(wrong)}")
        return value


class WhatIfFile(FileRecord):
    """A named change of the scenario, for `traincast explain`."""

    name: str = Field(min_length=1, max_length=80)
    change: dict[str, ChangeValue] = Field(min_length=1)
    """Key -> its new value, or a factor such as "x2". Keys are those of the scenario
    ("job.seq_length", "cluster.nodes", "cluster.profile"), of its profile ("node.nic.bandwidth"),
    constants ("constants.attention.efficiency"), stack ("stack.kernels.cpu_launch") and model
    ("model.num_hidden_layers")."""

    @field_validator("change", mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        return dict(_flattened(value)) if isinstance(value, dict) else value


def _flattened(table: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Return the leaves of nested tables, as TOML writes keys with dots, by their whole key."""
    found: list[tuple[str, Any]] = []
    for key, value in table.items():
        inner = isinstance(value, dict)
        found += _flattened(value, f"{before}{key}.") if inner else [(f"{before}{key}", value)]
    return found
