"""How long the ranks of a stage communicate in a step, hidden or not, and what they recompute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.api import Forecaster
from simulator.detail import operators_of
from simulator.parallel.layout import ParallelLayout
from simulator.results import Category, StepResult
from simulator.schedule.tasks import WorkKind

_RECOMPUTE = "recompute"
_INSIDE = (
    Category.TENSOR_COMM,
    Category.CONTEXT_COMM,
    Category.EXPERT_COMM,
    Category.HOST_COMM,
)
"""What passes send and receive."""
_TRAFFIC = {
    kind.name.lower(): category
    for category, kinds in {
        Category.PIPELINE_COMM: (
            *(WorkKind.SEND_FORWARD, WorkKind.SEND_BACKWARD),
            *(WorkKind.EXCHANGE_FORWARD, WorkKind.EXCHANGE_BACKWARD),
        ),
        Category.DATA_COMM: (
            *(WorkKind.GATHER, WorkKind.REDUCE, WorkKind.TIED_REDUCE),
            *(WorkKind.GATHER_CHUNK, WorkKind.BROADCAST, WorkKind.AVERAGE),
        ),
    }.items()
    for kind in kinds
}
"""Bars of a timeline that are communication."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTotals:
    """What a breakdown does not tell of one rank of a stage, seconds a step by category."""

    stage: int
    communication: Mapping[Category, float]
    """In which it communicates, hidden or not; what it never sends is left out."""
    recomputed: Mapping[Category, float]
    """What `Category.RECOMPUTE` is made of."""


def stage_totals(
    forecaster: Forecaster, layout: ParallelLayout, result: StepResult
) -> tuple[StageTotals, ...]:
    """Return for each stage how long it communicates in a simulated step, and what it recomputes.

    What passes hold is by itself, at the pace of a healthy stage; pipeline transfers and gradient
    traffic are as they were played.
    """
    sent: list[dict[Category, float]] = [{} for _ in range(layout.pp)]
    again: list[dict[Category, float]] = [{} for _ in range(layout.pp)]
    for stage in range(layout.pp):
        for use in operators_of(forecaster, layout, stage):
            if use.category in _INSIDE:
                _add(sent[stage], use.category, use.seconds)
            if use.phase == _RECOMPUTE:
                _add(again[stage], use.category, use.exposed)
    for span in result.spans:
        kind = _TRAFFIC.get(span.name)
        if kind is not None:
            _add(sent[span.stage], kind, span.stop - span.start)
    return tuple(
        StageTotals(stage=stage, communication=sent[stage], recomputed=again[stage])
        for stage in range(layout.pp)
    )


def _add(totals: dict[Category, float], kind: Category, seconds: float) -> None:
    totals[kind] = totals.get(kind, 0.0) + seconds
