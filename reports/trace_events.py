"""Events of a Chrome trace of a simulated step: bars, arrows, counters and names.

Times are microseconds to three decimals, so whole nanoseconds: what viewers keep. Format: Trace
Event Format, Google, sections "Complete Events", "Flow Events", "Counter Events" and "Metadata
Events".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from reports.trace_placing import (
    INSIDE_THREAD,
    THREADS,
    Event,
    Placed,
    Thread,
    micro,
    nano,
    place_of,
    process_of,
)
from simulator.results import LinkUse, MemoryCurve, MemoryUse, Span
from simulator.step_flows import Flow
from simulator.units import GB, GIB

_DECIMALS = 3
"""Of counters."""
Key: TypeAlias = tuple[int, int, int, int]
"""By which events are sorted: nanoseconds, longest first, outer first, bars before arrows."""
_TITLES = {
    "compute": "compute",
    "data": "data-parallel communication",
    "send": "pipeline sends",
}


def bar(each: Placed) -> tuple[Key, Event]:
    """Return the bar of a span."""
    span = each.span
    name = span.name.replace("_", " ")
    if span.micro_batch is not None and span.stream in THREADS:
        name += f" {span.micro_batch}"
    known = {"micro_batch": span.micro_batch, "virtual_stage": span.chunk}
    return (each.start, each.start - each.stop, each.depth, 0), {
        "ph": "X",
        **each.where,
        "ts": micro(each.start),
        "dur": micro(each.stop - each.start),
        "name": name,
        "cat": span.stream,
        "args": {key: value for key, value in known.items() if value is not None},
    }


def arrows(flows: Iterable[Flow], bars: Mapping[Span, Placed]) -> Iterator[tuple[Key, Event]]:
    """Yield the two ends of each flow.

    An end belongs to the innermost bar of its thread at its time that stands before it in the file:
    so it follows its own bar, before any that begin inside at the same time.
    """
    for number, flow in enumerate(flows, start=1):
        for phase, span in (("s", flow.source), ("f", flow.target)):
            each = bars[span]
            event: Event = {
                "ph": phase,
                "id": number,
                **each.where,
                "ts": micro(each.start),
                "name": flow.kind.value,
                "cat": "flow",
            }
            if phase == "f":
                event["bp"] = "e"
            yield (each.start, each.start - each.stop, each.depth, 1), event


def link_counters(use: LinkUse, process: int) -> Iterator[tuple[Key, Event]]:
    """Yield what one link of a class carries each time that it changes, GB/s."""
    if use.load is None:
        return
    alike = f" and {use.count - 1:,} alike" if use.count > 1 else ""
    rates = [*use.load.rates, 0.0]
    for time, rate, before in zip(use.load.times, rates, [-1.0, *rates], strict=False):
        if rate != before:
            value = {"GB/s": round(rate / GB, _DECIMALS)}
            yield _counter(f"{use.name}{alike}", process, time, value)


def memory_counters(curve: MemoryCurve) -> Iterator[tuple[Key, Event]]:
    """Yield the memory that a stage's tensors take each time that it changes, GiB."""
    for time, level in zip(curve.times, curve.allocated, strict=True):
        value = {"GiB": round(level / GIB, _DECIMALS)}
        yield _counter("memory of tensors", process_of(curve.stage), time, value)


def names(used: Iterable[Thread], memory: Iterable[MemoryUse]) -> Iterator[Event]:
    """Yield the names of processes and threads, in the order in which to show them."""
    titles = {number: _TITLES[stream] for stream, number in THREADS.items()}
    ranks = {use.stage: _ranks(use) for use in memory}
    threads = sorted(used)
    for stage in sorted({stage for stage, _ in threads}):
        yield from process_names(process_of(stage), f"stage {stage}{ranks.get(stage, '')}")
    for stage, thread in threads:
        lane = thread - INSIDE_THREAD
        title = titles.get(thread) or f"communication inside passes{f' {lane + 1}' if lane else ''}"
        yield from thread_names(process_of(stage), thread, title)


def _ranks(use: MemoryUse) -> str:
    first, last = use.first_rank, use.last_rank
    return f", rank {first:,}" if first == last else f", ranks {first:,} to {last:,}"


def process_names(process: int, name: str) -> Iterator[Event]:
    """Yield the name of a process, and its place: that of its number."""
    yield _of_process("process_name", process, {"name": name})
    yield _of_process("process_sort_index", process, {"sort_index": process})


def thread_names(process: int, thread: int, name: str) -> Iterator[Event]:
    """Yield the name of a thread, and its place in its process: that of its number."""
    place = {"ph": "M", **place_of(process, thread), "ts": 0}
    yield {**place, "name": "thread_name", "args": {"name": name}}
    yield {**place, "name": "thread_sort_index", "args": {"sort_index": thread}}


def _counter(name: str, process: int, time: float, value: Event) -> tuple[Key, Event]:
    start = nano(time)
    event = {"ph": "C", "pid": process, "ts": micro(start), "name": name, "args": value}
    return (start, 0, 0, 0), event


def _of_process(kind: str, process: int, args: Event) -> Event:
    return {"ph": "M", "pid": process, "ts": 0, "name": kind, "args": args}
