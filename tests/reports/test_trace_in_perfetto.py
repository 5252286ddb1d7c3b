"""Perfetto reads an exported trace without a complaint, and finds in it what was written."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import traincast
from tests.perfetto_reader import Perfetto, needs_perfetto, perfetto

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCENARIO = (
    Path(__file__).resolve().parents[2] / "examples" / "llama3-70b-64-h100-oversubscribed.toml"
)
Events = list[dict[str, Any]]
pytestmark = needs_perfetto


@pytest.fixture(name="events", scope="module")
def _events() -> Events:
    """A trace with bars of every kind, flows, and counters of memory and of links."""
    trace = traincast.trace_step(SCENARIO, traincast.simulate_step(SCENARIO))
    events: Events = trace["traceEvents"]
    return events


@pytest.fixture(name="read", scope="module")
def _read(browser: Browser, events: Events) -> Iterator[Perfetto]:
    with perfetto(browser, gzip.compress(json.dumps({"traceEvents": events}).encode())) as reader:
        yield reader


def of_kind(events: Events, kind: str) -> Events:
    return [event for event in events if event["ph"] == kind]


def nanoseconds(micro: float) -> int:
    return round(1000 * micro)


def test_it_has_no_complaint(read: Perfetto) -> None:
    query = "select name, value from stats where value > 0 and severity != 'info'"
    assert read.rows(query) == []


def test_it_finds_every_bar_on_its_thread(read: Perfetto, events: Events) -> None:
    named = {
        (event["name"], event["pid"], event.get("tid")): event["args"].get("name")
        for event in of_kind(events, "M")
    }
    written = Counter(
        (
            named["process_name", bar["pid"], None],
            named["thread_name", bar["pid"], bar["tid"]],
            bar["name"],
            nanoseconds(bar["ts"]),
            nanoseconds(bar["dur"]),
        )
        for bar in of_kind(events, "X")
    )
    query = """
        select process.name, thread.name, slice.name, slice.ts, slice.dur from slice
        join thread_track on slice.track_id = thread_track.id
        join thread using (utid) join process using (upid)
    """
    assert Counter(read.rows(query)) == written


def test_it_joins_the_bars_that_arrows_are_of(read: Perfetto, events: Events) -> None:
    inside = {"operator", "collective"}
    bars = {
        (bar["pid"], bar["tid"], bar["ts"], bar["cat"] in inside): bar
        for bar in of_kind(events, "X")
    }
    ends: dict[str, dict[int, tuple[str, int, int]]] = {"s": {}, "f": {}}
    for event in (each for each in events if each["ph"] in ends):
        where = (event["pid"], event["tid"], event["ts"], event["name"] == "collective")
        bar = bars[where]
        ends[event["ph"]][event["id"]] = (
            bar["name"],
            nanoseconds(bar["ts"]),
            nanoseconds(bar["dur"]),
        )
    written = Counter((*ends["s"][number], *end) for number, end in ends["f"].items())
    query = """
        select one.name, one.ts, one.dur, other.name, other.ts, other.dur from flow
        join slice one on flow.slice_out = one.id join slice other on flow.slice_in = other.id
    """
    assert Counter(read.rows(query)) == written


def test_it_finds_every_value_of_every_counter(read: Perfetto, events: Events) -> None:
    written = Counter(
        (f"{event['name']} {unit}", nanoseconds(event["ts"]), value)
        for event in of_kind(events, "C")
        for unit, value in event["args"].items()
    )
    query = """
        select process_counter_track.name, counter.ts, counter.value from counter
        join process_counter_track on counter.track_id = process_counter_track.id
    """
    assert Counter(read.rows(query)) == written
