"""What a report shows of a simulated step, as plain values: bars, memory over time, operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from reports.topology_figure import Picture
from simulator.hardware.profile import Profile
from simulator.results import Breakdown, MemoryCurve, MemoryUse, OperatorUse, Span, StepResult

if TYPE_CHECKING:
    from simulator.stage_totals import StageTotals


def detail_record(
    profile: Profile,
    result: StepResult,
    operators: Iterable[OperatorUse],
    curves: Iterable[MemoryCurve],
    totals: Iterable[StageTotals],
) -> dict[str, Any]:
    """Return what a step is made of, beyond its totals; see `result_files.step.StepFile`.

    The operators are of a stage that stands on the machine of `profile`.
    """
    return {
        "breakdowns": [breakdown_record(each) for each in result.breakdowns],
        "stage_totals": totals_record(totals),
        "stage_ranks": ranks_record(result.memory),
        "timeline": timeline_record(result.spans),
        "memory_curves": [
            {
                "stage": curve.stage,
                "time_s": list(curve.times),
                "allocated_bytes": list(curve.allocated),
            }
            for curve in curves
        ],
        "operators": [_operator(use) for use in operators],
        "peaks": _peaks(profile),
    }


def breakdown_record(breakdown: Breakdown) -> dict[str, Any]:
    """Return the seconds of one stage by category."""
    seconds = {str(kind): value for kind, value in breakdown.seconds.items()}
    return {"stage": breakdown.stage, "seconds": seconds}


def totals_record(totals: Iterable[StageTotals]) -> list[dict[str, Any]]:
    """Return what each stage sends, hidden or not, and recomputes, seconds by category."""
    return [
        {
            "stage": each.stage,
            "communication": {str(kind): value for kind, value in each.communication.items()},
            "recomputed": {str(kind): value for kind, value in each.recomputed.items()},
        }
        for each in totals
    ]


def ranks_record(memory: Iterable[MemoryUse]) -> list[dict[str, int]]:
    """Return the first and the last global rank of each stage."""
    return [{"stage": m.stage, "first": m.first_rank, "last": m.last_rank} for m in memory]


def timeline_record(spans: Sequence[Span]) -> dict[str, Any]:
    """Return the bars of a step column by column; words are places in lists of them."""
    streams = list(dict.fromkeys(span.stream for span in spans))
    names = list(dict.fromkeys(span.name for span in spans))
    stream_of = {word: place for place, word in enumerate(streams)}
    name_of = {word: place for place, word in enumerate(names)}
    return {
        "streams": streams,
        "names": names,
        "stage": [span.stage for span in spans],
        "stream": [stream_of[span.stream] for span in spans],
        "name": [name_of[span.name] for span in spans],
        "micro_batch": [span.micro_batch for span in spans],
        "chunk": [span.chunk for span in spans],
        "start_s": [span.start for span in spans],
        "stop_s": [span.stop for span in spans],
    }


def picture_record(picture: Picture) -> dict[str, Any]:
    """Return the picture of a network, or of a unit of it, with what its links carried."""
    return {
        "title": picture.title,
        "boxes": [{**asdict(box), "kind": box.kind.value} for box in picture.boxes],
        "lines": [
            {
                "one": line.one,
                "other": line.other,
                "cables": line.cables,
                "capacity_bytes_per_second": line.capacity,
                "utilisation": line.utilisation,
            }
            for line in picture.lines
        ],
    }


def _operator(use: OperatorUse) -> dict[str, Any]:
    return {
        "name": use.name,
        "phase": use.phase,
        "category": use.category.value,
        "calls": use.calls,
        "flops": use.flops,
        "bytes": use.bytes,
        "seconds": use.seconds,
        "exposed_s": use.exposed,
    }


def _peaks(profile: Profile) -> dict[str, Any]:
    """Return what the accelerator's data sheet promises, and which one that is."""
    gpu = profile.accelerator
    return {
        "accelerator": gpu.name,
        "matmul_flops_per_second": {str(kind): float(peak) for kind, peak in gpu.peak.items()},
        "memory_bandwidth_bytes_per_second": float(gpu.memory_bandwidth),
        "sources": [f"{each.what}: {each.reference}" for each in profile.machine.source],
    }
