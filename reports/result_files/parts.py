"""Pieces that several kinds of result files share. Keys carry their unit; shares are of 1."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from reports.result_kinds import ResultKind

Layout = dict[str, Any]
"""A layout by Megatron's names."""
Seconds = dict[str, float]
"""Seconds by category (`simulator.results.Category`)."""


class ResultRecord(BaseModel):
    """Base of all that is read from a result file; keys that it does not know are left alone."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)


class Result(ResultRecord):
    """Base of the whole of a result file."""

    kind: ResultKind
    format: int


class Columns(ResultRecord):
    """Base of a table that is kept column by column: all are equally long."""

    @model_validator(mode="after")
    def _is_even(self) -> Self:
        lengths = {name: len(value) for name, value in self._columns().items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise ValueError(f"columns must be equally long ({counts})")
        return self

    def _columns(self) -> dict[str, Sized]:
        return dict(self)


class ModelFacts(ResultRecord):
    """The model that was asked for."""

    name: str
    parameters: int
    notes: tuple[str, ...] = ()


class PartFacts(ResultRecord):
    """One part of the cluster."""

    profile: str
    accelerator: str
    nodes: int
    accelerators: int


class ClusterFacts(ResultRecord):
    """The cluster that was asked for."""

    profile: str
    accelerator: str
    nodes: int
    accelerators: int
    parts: tuple[PartFacts, ...] = ()


class JobFacts(ResultRecord):
    """What a report says of the job."""

    global_batch_size: int
    seq_length: int
    precision: str
    stack: str
    tokens: int | None = None
    recipe: str | None = None
    optimizer: str = ""


class ProvenanceFacts(ResultRecord):
    """What a forecast was computed from."""

    traincast: str
    profile: str
    profile_sha256: str
    stack: str
    seed: int | None = None
    constants: dict[str, str] = Field(default_factory=dict)
    """Constant -> `nominal`, `fitted` or `measured`, and from what."""
    used: tuple[str, ...] = ()
    """Constants that the forecast needs."""
    validation: str = ""
    """What the interval of the step time was taken from."""
    warnings: tuple[str, ...] = ()


class Asked(Result):
    """What every forecast of one scenario begins with."""

    title: str
    scenario: str
    model: ModelFacts
    cluster: ClusterFacts
    job: JobFacts
    provenance: ProvenanceFacts


class RunFacts(ResultRecord):
    """The whole run at the step time, without failures."""

    steps: int
    days: float
    days_low: float
    days_high: float
    accelerator_hours: float
    cost: float | None
    currency: str


class StageSeconds(ResultRecord):
    """Seconds of one stage's step by category."""

    stage: int
    seconds: Seconds


class StageTotals(ResultRecord):
    """What a breakdown does not tell of a stage, seconds a step by category."""

    stage: int
    communication: Seconds
    """In which a rank communicates, hidden or not."""
    recomputed: Seconds
    """What the category `recompute` is made of."""


class StageRanks(ResultRecord):
    """The global ranks of a stage."""

    stage: int
    first: int
    last: int


class Three(ResultRecord):
    """A quantity over simulated runs."""

    p10: float
    p50: float
    p90: float


def words_of(indices: Sequence[int], words: Sequence[str]) -> list[str]:
    """Return the words that a column of indices stands for."""
    return [words[index] for index in indices]
