"""A simulated step as a Chrome trace, for ui.perfetto.dev and chrome://tracing.

Times are microseconds from the start of the step. A process is a pipeline stage: one rank that
stands for its tp x cp x dp peers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from reports.step_detail import breakdown_record, ranks_record, totals_record
from reports.trace_events import (
    arrows,
    bar,
    link_counters,
    memory_counters,
    names,
    process_names,
)
from reports.trace_placing import placed, process_of
from simulator.results import MemoryCurve, Span, StepResult
from simulator.step_flows import Flow

if TYPE_CHECKING:
    from simulator.stage_totals import StageTotals


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDetail:
    """What a trace shows beyond the bars of a step."""

    operators: Sequence[Span] = ()
    """What runs inside passes."""
    flows: Sequence[Flow] = ()
    """Between spans of the result and `operators`."""
    memory: Sequence[MemoryCurve] = ()
    totals: Sequence[StageTotals] = ()
    """Of each stage."""
    layout: Mapping[str, Any] = field(default_factory=dict)
    """The sizes of its axes, which say what groups of ranks are for."""


BARS = TraceDetail()
"""Nothing beyond them."""


def step_trace(
    result: StepResult, title: str = "traincast", detail: TraceDetail = BARS
) -> dict[str, Any]:
    """Return the timeline of a simulated step as a trace; operators stand inside its passes.

    Events are sorted by time, enclosing ones first. Arrows join what waits for what. Each stage
    shows the memory that its tensors take; below the stages stands what the busiest links carry.
    `otherData` holds what `traincast trace compare` needs.
    """
    bars = placed(result.spans, detail.operators)
    network = 1 + max((process_of(each.span.stage) for each in bars), default=0)
    links = [counter for use in result.links for counter in link_counters(use, network)]
    levels = [counter for curve in detail.memory for counter in memory_counters(curve)]
    ends = arrows(detail.flows, {each.span: each for each in bars}) if detail.flows else ()
    timed = sorted([*map(bar, bars), *ends, *links, *levels], key=lambda each: each[0])
    used = {(each.span.stage, each.thread) for each in bars}
    shown = process_names(network, "network: each of the busiest links") if links else ()
    return {
        "traceEvents": [*names(used, result.memory), *shown, *(event for _, event in timed)],
        "displayTimeUnit": "ms",
        "otherData": _said(result, title, detail),
    }


def _said(result: StepResult, title: str, detail: TraceDetail) -> dict[str, Any]:
    return {
        "title": title,
        "step_time_s": result.step_time,
        "low_s": result.low,
        "high_s": result.high,
        "world_size": result.world_size,
        "layout": dict(detail.layout),
        "stage_ranks": ranks_record(result.memory),
        "busiest_stage": result.breakdown.stage,
        "breakdowns": [breakdown_record(each) for each in result.breakdowns or (result.breakdown,)],
        "stage_totals": totals_record(detail.totals),
        **asdict(result.provenance),
        "constants": dict(result.provenance.constants),
    }
