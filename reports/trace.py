"""A simulated step as a Chrome trace, for ui.perfetto.dev and chrome://tracing.

Times are microseconds from the start of the step. A process is a pipeline stage: one rank that
stands for its tp x cp x dp peers. Format: Trace Event Format, Google, sections "Complete Events",
"Flow Events", "Counter Events" and "Metadata Events".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from reports.step_detail import breakdown_record
from simulator.cost.timeline import COLLECTIVE
from simulator.results import LinkUse, MemoryCurve, Span, StepResult
from simulator.units import GB, GIB, US

_DECIMALS = 3
_THREADS = {"compute": 0, "data": 1, "send": 2}
_TITLES = {
    "compute": "compute",
    "data": "data-parallel communication",
    "send": "pipeline sends",
}
_COLLECTIVE_THREAD = 10
_RECEIVER = {"send_forward": ("forward", 1), "send_backward": ("backward", -1)}
_SENDERS = {"forward": ("forward",), "backward": ("backward", "backward_input")}
"""Passes whose end lets a transfer to a pass begin."""
_REDUCTIONS = ("reduce", "tied_reduce")

Event = dict[str, Any]
_Pass: TypeAlias = tuple[str, int | None, int | None]


def step_trace(
    result: StepResult,
    operators: Sequence[Span] = (),
    title: str = "traincast",
    memory: Iterable[MemoryCurve] = (),
) -> dict[str, Any]:
    """Return the timeline of a simulated step as a trace; `operators` stand inside its passes.

    Events are sorted by time, enclosing ones first. Arrows join each pass, its pipeline transfer
    and the pass that waits for it, and reductions of gradients and the optimizer. Each stage shows
    the memory that its tensors take; below the stages stands what the busiest links carry.
    """
    lanes = list(_lanes(operators))
    bars = [_bar(span, _THREADS[span.stream]) for span in result.spans]
    bars += [_bar(span, thread) for span, thread in lanes]
    network = 1 + max((bar["pid"] for bar in bars), default=-1)
    counters = [event for use in result.links for event in _counters(use, network)]
    levels = [event for curve in memory for event in _memory(curve)]
    timed = [*bars, *_arrows(result.spans), *counters, *levels]
    timed.sort(key=lambda event: (event["ts"], -event.get("dur", 0.0), event["ph"]))
    used = {(bar["pid"], bar["tid"]) for bar in bars}
    return {
        "traceEvents": [*_names(used), *(_network_name(network) if counters else ()), *timed],
        "displayTimeUnit": "ms",
        "otherData": {
            "title": title,
            "step_time_s": result.step_time,
            "low_s": result.low,
            "high_s": result.high,
            "busiest_stage": result.breakdown.stage,
            "breakdowns": [
                breakdown_record(each) for each in result.breakdowns or (result.breakdown,)
            ],
            **asdict(result.provenance),
            "constants": dict(result.provenance.constants),
        },
    }


def _bar(span: Span, thread: int) -> Event:
    start = _micro(span.start)
    name = span.name.replace("_", " ")
    if span.micro_batch is not None and span.stream in _THREADS:
        name += f" {span.micro_batch}"
    known = {"micro_batch": span.micro_batch, "virtual_stage": span.chunk}
    return {
        "ph": "X",
        "pid": span.stage,
        "tid": thread,
        "ts": start,
        "dur": round(_micro(span.stop) - start, _DECIMALS),
        "name": name,
        "cat": span.stream,
        "args": {key: value for key, value in known.items() if value is not None},
    }


def _counters(use: LinkUse, process: int) -> Iterator[Event]:
    """Yield what one link of a class carries each time that it changes, GB/s."""
    if use.load is None:
        return
    alike = f" and {use.count - 1:,} alike" if use.count > 1 else ""
    rates = [*use.load.rates, 0.0]
    for time, rate, before in zip(use.load.times, rates, [-1.0, *rates], strict=False):
        if rate != before:
            yield {
                "ph": "C",
                "pid": process,
                "tid": 0,
                "ts": _micro(time),
                "name": f"{use.name}{alike}",
                "args": {"GB/s": round(rate / GB, _DECIMALS)},
            }


def _memory(curve: MemoryCurve) -> Iterator[Event]:
    """Yield the memory that a stage's tensors take each time that it changes, GiB."""
    for time, level in zip(curve.times, curve.allocated, strict=True):
        yield {
            "ph": "C",
            "pid": curve.stage,
            "tid": 0,
            "ts": _micro(time),
            "name": "memory of tensors",
            "args": {"GiB": round(level / GIB, _DECIMALS)},
        }


def _network_name(process: int) -> Iterator[Event]:
    yield _name("process_name", process, 0, {"name": "network: each of the busiest links"})
    yield _name("process_sort_index", process, 0, {"sort_index": process})


def _lanes(operators: Iterable[Span]) -> Iterator[tuple[Span, int]]:
    """Give each span its thread: collectives that overlap each other stand on separate ones."""
    free: dict[int, list[float]] = {}
    for span in sorted(operators, key=lambda span: (span.start, span.stop)):
        if span.stream != COLLECTIVE:
            yield span, _THREADS["compute"]
            continue
        ends = free.setdefault(span.stage, [])
        lane = next((i for i, end in enumerate(ends) if end <= span.start), len(ends))
        ends[lane : lane + 1] = [span.stop]
        yield span, _COLLECTIVE_THREAD + lane


def _arrows(spans: Iterable[Span]) -> Iterator[Event]:
    """Yield arrows from pass to transfer, from there to the waiting pass, and to the optimizer.

    A pass sends when it has ended; where it was played in several parts, after the last one.
    """
    spans = list(spans)
    first: dict[_Pass, Span] = {}
    last: dict[_Pass, Span] = {}
    for span in sorted(spans, key=lambda span: span.start):
        first.setdefault((span.name, span.chunk, span.micro_batch), span)
        last[span.name, span.chunk, span.micro_batch] = span
    pairs = [*_transfers(spans, first, last), *_gradients(spans)]
    for number, (one, other, name) in enumerate(pairs, start=1):
        yield {**_arrow("s", one, number), "name": name}
        yield {**_arrow("f", other, number), "name": name, "bp": "e"}


def _transfers(
    spans: Iterable[Span], first: Mapping[_Pass, Span], last: Mapping[_Pass, Span]
) -> Iterator[tuple[Span, Span, str]]:
    for span in spans:
        if span.name not in _RECEIVER or span.chunk is None:
            continue
        name, step = _RECEIVER[span.name]
        senders = (last.get((each, span.chunk, span.micro_batch)) for each in _SENDERS[name])
        sender = next((each for each in senders if each is not None), None)
        receiver = first.get((name, span.chunk + step, span.micro_batch))
        if sender is not None and sender.start <= span.start:
            yield sender, span, name
        if receiver is not None:
            yield span, receiver, name


def _gradients(spans: Sequence[Span]) -> Iterator[tuple[Span, Span, str]]:
    """Yield each reduction of gradients with the optimizer step of its stage that waits for it."""
    steps = {span.stage: span for span in spans if span.name == "optimizer"}
    for span in spans:
        update = steps.get(span.stage)
        if span.name in _REDUCTIONS and update is not None and span.stop <= update.start:
            yield span, update, "gradients"


def _arrow(phase: str, span: Span, number: int) -> Event:
    return {
        "ph": phase,
        "id": number,
        "pid": span.stage,
        "tid": _THREADS[span.stream],
        "ts": _micro(span.start),
        "cat": "pipeline",
    }


def _names(used: set[tuple[int, int]]) -> Iterator[Event]:
    """Yield the names of processes and threads, in the order in which to show them."""
    titles = {number: _TITLES[stream] for stream, number in _THREADS.items()}
    for stage in sorted({stage for stage, _ in used}):
        yield _name("process_name", stage, 0, {"name": f"stage {stage}"})
        yield _name("process_sort_index", stage, 0, {"sort_index": stage})
    for stage, thread in sorted(used):
        title = titles.get(thread, "collectives of a pass")
        yield _name("thread_name", stage, thread, {"name": title})
        yield _name("thread_sort_index", stage, thread, {"sort_index": thread})


def _name(kind: str, stage: int, thread: int, args: dict[str, Any]) -> Event:
    return {"ph": "M", "pid": stage, "tid": thread, "ts": 0, "name": kind, "args": args}


def _micro(seconds: float) -> float:
    return round(seconds / US, _DECIMALS)
