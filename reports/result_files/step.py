"""A forecast step, as `traincast simulate --json` writes it."""

from __future__ import annotations

from collections.abc import Sized
from itertools import chain
from typing import Self

from pydantic import Field, model_validator

from reports.result_files.parts import (
    Asked,
    Columns,
    Layout,
    ResultRecord,
    RunFacts,
    StageRanks,
    StageSeconds,
    StageTotals,
)

_MOST_STAGES = 65_536
"""Stages that a timeline may have, many times those of any pipeline: each is a row of a figure."""


class StepFacts(ResultRecord):
    """The step in numbers."""

    step_time_s: float
    low_s: float
    high_s: float
    """Ends of the 80 % interval."""
    tokens: int
    """A step."""
    tokens_per_second: float
    tokens_per_second_per_accelerator: float
    model_flops: float
    dense_peak_flops_per_second: float
    """Of one accelerator, at the job's precision."""
    mfu: float
    mfu_convention: str
    hfu: float
    exposed_communication_s: float
    bubble_s: float


class StageMemoryUse(ResultRecord):
    """Bytes of one rank of a stage at its peak."""

    stage: int
    weights: float
    gradients: float
    optimizer: float
    activations: float
    transient: float
    logits: float
    fragmentation: float
    context: float
    moment: str
    host: float = 0.0
    """Of host memory; not part of the rest."""
    allocated: float
    """What tensors take (`max_memory_allocated`)."""
    reserved: float
    """With fragmentation, the CUDA context and NCCL."""


class MemoryFacts(ResultRecord):
    """The memory of every stage."""

    capacity_bytes: float
    stage_capacity_bytes: tuple[float, ...] = ()
    """Of each stage, in a mixed cluster; else empty."""
    fits: bool
    stages: tuple[StageMemoryUse, ...] = Field(min_length=1)


class LinkLoad(Columns):
    """What a link carries over time: `rates_bytes_per_second[i]` from `times_s[i]` on."""

    times_s: tuple[float, ...]
    rates_bytes_per_second: tuple[float, ...]
    merged: bool = False
    """Whether rates are means over equal intervals."""

    def _columns(self) -> dict[str, Sized]:
        return {"rates": self.rates_bytes_per_second, "times - 1": self.times_s[1:]}


class LinkFacts(ResultRecord):
    """Links of the network that carry the same, one direction each."""

    name: str
    alike: int
    capacity_bytes_per_second: float
    carried_bytes: float
    utilisation: float
    """Bytes carried over what it could carry in the step."""
    full_share: float | None = None
    load: LinkLoad | None = None


class CauseFacts(ResultRecord):
    """Something that makes the step longer than without it."""

    what: str
    seconds: float


class BoxFacts(ResultRecord):
    """A device of the drawn network, or a group of neighbours."""

    label: str
    kind: str
    count: int
    x: float
    """Of the width of the picture, 0 to 1."""
    y: float
    """In rows from below."""


class LineFacts(ResultRecord):
    """All cables between two boxes."""

    one: int
    other: int
    cables: int
    capacity_bytes_per_second: float
    """Of all together, one direction."""
    utilisation: float | None
    """Of the fullest link; None where that is not known."""


class PictureFacts(ResultRecord):
    """The network, or a unit of it, as it is drawn."""

    title: str
    boxes: tuple[BoxFacts, ...]
    lines: tuple[LineFacts, ...]

    @model_validator(mode="after")
    def _joins_boxes(self) -> Self:
        ends = chain.from_iterable((line.one, line.other) for line in self.lines)
        if any(not 0 <= end < len(self.boxes) for end in ends):
            raise ValueError("lines must join boxes that are listed")
        return self


class NetworkFacts(ResultRecord):
    """What the network carried."""

    links: tuple[LinkFacts, ...] = ()
    causes: tuple[CauseFacts, ...] = ()
    drawn_s: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()
    pictures: tuple[PictureFacts, ...] = ()
    """None where no network was described."""


class Timeline(Columns):
    """The bars of the simulated step; `stream` and `name` are places in the lists of words."""

    streams: tuple[str, ...]
    names: tuple[str, ...]
    stage: tuple[int, ...]
    stream: tuple[int, ...]
    name: tuple[int, ...]
    micro_batch: tuple[int | None, ...]
    chunk: tuple[int | None, ...]
    start_s: tuple[float, ...]
    stop_s: tuple[float, ...]

    def _columns(self) -> dict[str, Sized]:
        return {name: value for name, value in self if name not in ("streams", "names")}

    @model_validator(mode="after")
    def _has_few_stages(self) -> Self:
        if any(not 0 <= stage < _MOST_STAGES for stage in self.stage):
            raise ValueError(f"stage must be 0 to {_MOST_STAGES - 1}")
        return self

    @model_validator(mode="after")
    def _has_its_words(self) -> Self:
        for column, words in ((self.stream, self.streams), (self.name, self.names)):
            if any(not 0 <= index < len(words) for index in column):
                raise ValueError("stream and name must be places in streams and names")
        return self


class MemoryCurve(Columns):
    """Bytes that tensors of one rank take from each time until the next."""

    stage: int
    time_s: tuple[float, ...]
    allocated_bytes: tuple[float, ...]

    def _columns(self) -> dict[str, Sized]:
        return {"time_s": self.time_s, "allocated_bytes": self.allocated_bytes}


class OperatorFacts(ResultRecord):
    """What one rank of the busiest stage spends on an operator in a step."""

    name: str
    phase: str
    """`forward`, `backward`, `recompute`, ..."""
    category: str
    calls: float
    flops: float
    """Of all calls, as the matrix units run them."""
    bytes: float
    """To and from device memory, of all calls, each tensor once; 0 for collectives."""
    seconds: float
    """Of all calls, hidden or not."""
    exposed_s: float
    """By which they make the passes longer."""


class PeakFacts(ResultRecord):
    """What the accelerator of the busiest stage could do at most, by its vendor's numbers."""

    accelerator: str = ""
    matmul_flops_per_second: dict[str, float]
    """By number format, dense."""
    memory_bandwidth_bytes_per_second: float
    sources: tuple[str, ...] = ()
    """Data sheets of the profile."""


class StepFile(Asked):
    """A forecast step with its timeline."""

    layout: Layout
    method: str
    events: int
    tasks: int = 0
    """Timed by the engine."""
    played_tasks: int = 0
    """Those that others could lengthen."""
    step: StepFacts
    run: RunFacts | None
    breakdown: StageSeconds
    """Of the busiest stage."""
    network: NetworkFacts = Field(default_factory=NetworkFacts)
    memory: MemoryFacts
    breakdowns: tuple[StageSeconds, ...] = ()
    """Of every stage."""
    stage_totals: tuple[StageTotals, ...] = ()
    stage_ranks: tuple[StageRanks, ...] = ()
    timeline: Timeline | None = None
    memory_curves: tuple[MemoryCurve, ...] = ()
    """Of every stage."""
    operators: tuple[OperatorFacts, ...] = ()
    peaks: PeakFacts | None = None
