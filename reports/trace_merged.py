"""A forecast step and measured ones in one trace, all beginning at time 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from calibrate.import_kineto_operators import Slice
from calibrate.import_kineto_steps import MeasuredStep
from reports.trace_events import process_names, thread_names
from reports.trace_forecast import TraceForecast
from reports.trace_placing import Event, micro, nano, place_of

_BLURRED = 500
"""Nanoseconds by which two kernels of one stream can seem to overlap: a double of microseconds
since 1970 has steps of 250."""


def merged_trace(forecast: TraceForecast, steps: Iterable[MeasuredStep]) -> dict[str, Any]:
    """Return the forecast's events and the work of `steps` as a Chrome trace, times from 0.

    Processes are named "forecast: ..." and "measured: rank N, step M".
    """
    events = [_renamed(event) for event in forecast.events]
    process = 1 + max((event["pid"] for event in events if "pid" in event), default=0)
    for step in steps:
        events += _events(step, process)
        process += 1
    events.sort(key=lambda event: (event["ph"] != "M", event.get("ts", 0)))
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"title": forecast.title}}


def _renamed(event: Mapping[str, Any]) -> Event:
    if event.get("ph") == "M" and event.get("name") == "process_name":
        return {**event, "args": {"name": f"forecast: {event['args']['name']}"}}
    return dict(event)


@dataclass(frozen=True, slots=True)
class _Bar:
    """A slice in nanoseconds from the start of its step, on one of the lanes of its track."""

    slice: Slice
    start: int
    stop: int
    lane: int


def _events(step: MeasuredStep, process: int) -> Iterator[Event]:
    rank = "rank not recorded" if step.rank is None else f"rank {step.rank}"
    yield from process_names(process, f"measured: {rank}, step {step.number}")
    bars = list(_bars(step))
    threads = {
        place: number
        for number, place in enumerate(sorted({(bar.slice.track, bar.lane) for bar in bars}))
    }
    for (track, lane), thread in threads.items():
        yield from thread_names(process, thread, f"{track} ({lane + 1})" if lane else track)
    for bar in bars:
        label = str(bar.slice.label)
        yield {
            "ph": "X",
            **place_of(process, threads[bar.slice.track, bar.lane]),
            "ts": micro(bar.start),
            "dur": micro(bar.stop - bar.start),
            "name": bar.slice.name,
            "cat": label,
            "args": {"class": label},
        }


def _bars(step: MeasuredStep) -> Iterator[_Bar]:
    """Yield the work of a step; what overlaps on one track stands on lanes of its own."""
    lanes: dict[str, list[_Bar]] = {}
    for each in sorted(step.slices, key=lambda each: (each.start, -each.stop)):
        start, stop = nano(each.start - step.start), nano(each.stop - step.start)
        last = lanes.setdefault(each.track, [])
        found = _Bar(each, start, stop, lane=len(last))
        lane = next((i for i, bar in enumerate(last) if bar.stop <= start + _BLURRED), None)
        if lane is None:
            last.append(found)
            continue
        yield replace(last[lane], stop=max(last[lane].start, min(last[lane].stop, start)))
        last[lane] = replace(found, lane=lane)
    for last in lanes.values():
        yield from last
