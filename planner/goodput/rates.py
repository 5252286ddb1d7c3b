"""How often things fail: files of counted failures, and what they say of another cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import assert_never

import numpy as np
from pydantic import Field

from planner.shipped import read_shipped, shipped_names
from simulator.files import FileRecord
from simulator.hardware.profile import Profile, Source
from simulator.units import SECONDS_PER_DAY, Seconds

RELIABILITY_FOLDER = "reliability"
_JEFFREYS = 0.5
"""Events that the prior of a Poisson rate adds (Jeffreys 1946: proportional to rate^-1/2)."""


class Per(StrEnum):
    """What there is more of in a larger cluster."""

    ACCELERATOR = "accelerator"
    NODE = "node"
    NIC = "nic"
    LEAF = "leaf"
    """Leaf switches."""
    JOB = "job"
    """One, however large it is."""


class FailureKind(FileRecord):
    """Failures of one kind that were counted."""

    name: str
    per: Per
    """What it scales with."""
    events: int = Field(ge=0)
    """Failures that were seen."""
    exposure_days: float = Field(gt=0)
    """Days x things in which they were seen: 54 days of 16,384 accelerators are 884,736."""
    loses_node: bool
    """Whether the node is out until it is repaired; else the job starts again on the same nodes."""


class Recovery(FileRecord):
    """Times of a recovery, where a scenario does not say."""

    detection: Seconds
    """From the failure until the job is stopped."""
    restart: Seconds
    """Until the first step, without reading the checkpoint."""
    repair: Seconds
    """Mean, until a lost node is back."""
    checkpoint_overhead: Seconds
    """Training waits for each checkpoint besides copies and writes."""


class ReliabilityFile(FileRecord):
    """What is known of the failures of one cluster or run."""

    name: str
    title: str
    kind: tuple[FailureKind, ...] = Field(min_length=1)
    recovery: Recovery
    source: tuple[Source, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """Failures of the whole cluster while the job runs on all of it."""

    per_second: float
    """Failures a second."""
    loses_node: float
    """Share of them that take a node out."""

    @property
    def mtbf(self) -> float:
        """Mean seconds between failures."""
        return 1.0 / self.per_second if self.per_second else float("inf")


NOTHING_FAILS = Hazard(per_second=0.0, loses_node=0.0)


def load_rates(name: str, *, where: str = "", number: int = 0) -> ReliabilityFile:
    """Return shipped failure rates, or those in a .toml file.

    Raises:
        InputError: there are none of that name, or they are wrong.
    """
    key = f"run.failures.rates.{number}"
    return read_shipped(ReliabilityFile, RELIABILITY_FOLDER, name, where, key)


def rate_names() -> list[str]:
    """Return the names of the shipped failure rates."""
    return shipped_names(RELIABILITY_FOLDER)


def expected_hazard(file: ReliabilityFile, profile: Profile, nodes: int) -> Hazard:
    """Return the hazard of `nodes` nodes at the rates that were counted."""
    return _hazard(file, profile, nodes, [kind.events for kind in file.kind])


def drawn_hazard(
    file: ReliabilityFile, profile: Profile, nodes: int, rng: np.random.Generator
) -> Hazard:
    """Return a hazard that fits what was counted on a cluster.

    Each rate is drawn from its posterior under Jeffreys' prior, a gamma distribution of shape
    events + 1/2 and scale 1 / exposure (Gelman et al., Bayesian Data Analysis, section 2.6).
    """
    return _hazard(file, profile, nodes, [rng.gamma(k.events + _JEFFREYS) for k in file.kind])


def things(per: Per, profile: Profile, nodes: int) -> int:
    """Return how many of a thing `nodes` nodes have."""
    match per:
        case Per.ACCELERATOR:
            return nodes * profile.node.accelerators
        case Per.NODE:
            return nodes
        case Per.NIC:
            return nodes * (profile.node.nic.per_node if profile.node.nic is not None else 0)
        case Per.LEAF:
            return ceil(nodes / profile.fabric.nodes_per_leaf)
        case Per.JOB:
            return 1
        case _:
            assert_never(per)


def _hazard(file: ReliabilityFile, profile: Profile, nodes: int, events: Sequence[float]) -> Hazard:
    daily = [
        count / kind.exposure_days * things(kind.per, profile, nodes)
        for kind, count in zip(file.kind, events, strict=True)
    ]
    total = sum(daily)
    losing = sum(rate for rate, kind in zip(daily, file.kind, strict=True) if kind.loses_node)
    return Hazard(per_second=total / SECONDS_PER_DAY, loses_node=losing / total if total else 0.0)
