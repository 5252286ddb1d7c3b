"""A forecast step and measured ones in one trace, all beginning at time 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from calibrate.import_kineto_steps import MeasuredStep
from reports.trace_forecast import TraceForecast
from simulator.units import US

_DECIMALS = 3
Event = dict[str, Any]


def merged_trace(forecast: TraceForecast, steps: Iterable[MeasuredStep]) -> dict[str, Any]:
    """Return the forecast's events and the work of `steps` as a Chrome trace, times from 0.

    Processes are named "forecast: ..." and "measured: rank N, step M".
    """
    events = [_renamed(event) for event in forecast.events]
    process = 1 + max((event["pid"] for event in events if "pid" in event), default=-1)
    for step in steps:
        events += _events(step, process)
        process += 1
    events.sort(key=lambda event: (event["ph"] != "M", event.get("ts", 0), -event.get("dur", 0)))
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"title": forecast.title}}


def _renamed(event: Any) -> Event:
    if event.get("ph") == "M" and event.get("name") == "process_name":
        return {**event, "args": {"name": f"forecast: {event['args']['name']}"}}
    return dict(event)


def _events(step: MeasuredStep, process: int) -> Iterator[Event]:
    rank = "rank not recorded" if step.rank is None else f"rank {step.rank}"
    name = f"measured: {rank}, step {step.number}"
    yield _meta("process_name", process, 0, {"name": name})
    yield _meta("process_sort_index", process, 0, {"sort_index": process})
    threads = {track: place for place, track in enumerate(sorted({s.track for s in step.slices}))}
    for track, thread in threads.items():
        yield _meta("thread_name", process, thread, {"name": track})
    for each in step.slices:
        start = round((each.start - step.start) / US, _DECIMALS)
        stop = round((each.stop - step.start) / US, _DECIMALS)
        yield {
            "ph": "X",
            "pid": process,
            "tid": threads[each.track],
            "ts": start,
            "dur": round(stop - start, _DECIMALS),
            "name": each.name,
            "cat": str(each.label),
            "args": {"class": str(each.label)},
        }


def _meta(kind: str, process: int, thread: int, args: dict[str, Any]) -> Event:
    return {"ph": "M", "pid": process, "tid": thread, "ts": 0, "name": kind, "args": args}
