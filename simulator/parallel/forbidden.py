"""Part of a layout that a search must not have."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from simulator.files import FileRecord
from simulator.parallel.layout import (
    ContextExchange,
    ParallelLayout,
    Recompute,
    ScheduleName,
)

_Size = Annotated[int, Field(ge=1, le=10**6)]


class ForbiddenLayout(FileRecord):
    """Layouts that have all of the values given here."""

    tp: _Size | None = None
    pp: _Size | None = None
    dp: _Size | None = None
    cp: _Size | None = None
    ep: _Size | None = None
    etp: _Size | None = None
    """Tensor-parallel size of the experts, filled in where a layout leaves it to tp."""
    cp_comm_type: ContextExchange | None = None
    vpp: _Size | None = None
    micro_batch_size: _Size | None = None
    schedule: ScheduleName | None = None
    sequence_parallel: bool | None = None
    zero_stage: Annotated[int, Field(ge=0, le=3)] | None = None
    recompute: Recompute | None = None
    offload_layers: Annotated[int, Field(ge=0)] | None = None
    optimizer_offload: Annotated[float, Field(ge=0, le=1)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.given:
            raise ValueError("forbids every layout; give at least one key of a layout")
        return self

    @property
    def given(self) -> dict[str, Any]:
        """The values that are given, by field of a layout."""
        return {key: value for key, value in self if value is not None}

    def matches(self, layout: ParallelLayout) -> bool:
        """Return whether a layout has all of the values."""
        return all(value_of(layout, key) == value for key, value in self.given.items())

    def __str__(self) -> str:
        return ", ".join(f"{key} = {value}" for key, value in self.given.items())


def value_of(layout: ParallelLayout, key: str) -> Any:
    """Return what a layout has at a key of `ForbiddenLayout`, defaults filled in."""
    match key:
        case "etp":
            return layout.expert_tp
        case "schedule":
            return layout.effective_schedule
        case _:
            return getattr(layout, key)
