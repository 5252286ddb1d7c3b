"""Traces keep to the Trace Event Format and show what was simulated."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import traincast
from reports.trace import step_trace
from simulator.results import LinkUse, LoadCurve

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = [
    *("gpt-18b-gpipe", "llama3-70b-64-h100-oversubscribed"),
    *("llama3.1-8b-fsdp", "lan-parameter-server"),
]
REQUIRED = {
    "M": {"name", "pid", "tid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
    "C": {"name", "pid", "ts", "args"},
}
Events = list[dict[str, Any]]


@pytest.fixture(name="trace", scope="module", params=NAMES)
def _trace(request: pytest.FixtureRequest) -> dict[str, Any]:
    scenario = EXAMPLES / f"{request.param}.toml"
    traced = traincast.trace_step(scenario, traincast.simulate_step(scenario))
    loaded: dict[str, Any] = json.loads(json.dumps(traced, allow_nan=False))
    return loaded


def of_kind(trace: dict[str, Any], kind: str) -> Events:
    return [event for event in trace["traceEvents"] if event["ph"] == kind]


def test_every_event_has_the_keys_of_its_kind(trace: dict[str, Any]) -> None:
    lacking = [e for e in trace["traceEvents"] if not REQUIRED[e["ph"]] <= e.keys()]
    assert lacking == []


def test_times_rise_and_nothing_lasts_less_than_nothing(trace: dict[str, Any]) -> None:
    times = [event["ts"] for event in trace["traceEvents"] if event["ph"] != "M"]
    shortest = min(event["dur"] for event in of_kind(trace, "X"))
    assert (times == sorted(times), times[0] >= 0, shortest >= 0) == (True, True, True)


def test_bars_of_a_thread_nest_or_follow_each_other(trace: dict[str, Any]) -> None:
    open_until: dict[tuple[int, int], list[float]] = {}
    for bar in of_kind(trace, "X"):
        stack = open_until.setdefault((bar["pid"], bar["tid"]), [])
        while stack and stack[-1] <= bar["ts"] + 0.0015:
            stack.pop()
        assert not stack or bar["ts"] + bar["dur"] <= stack[-1] + 0.0015, bar
        stack.append(bar["ts"] + bar["dur"])


def test_every_arrow_has_one_start_and_one_later_end(trace: dict[str, Any]) -> None:
    starts = {event["id"]: event["ts"] for event in of_kind(trace, "s")}
    ends = {event["id"]: event["ts"] for event in of_kind(trace, "f")}
    counts = Counter(e["id"] for kind in "sf" for e in of_kind(trace, kind))
    assert starts.keys() == ends.keys()
    assert set(counts.values()) <= {2}
    assert all(starts[number] <= ends[number] for number in starts)


def test_every_bar_stands_on_a_named_thread(trace: dict[str, Any]) -> None:
    named = {(e["pid"], e["tid"]) for e in of_kind(trace, "M") if e["name"] == "thread_name"}
    assert {(bar["pid"], bar["tid"]) for bar in of_kind(trace, "X")} == named


def test_the_last_bar_ends_with_the_step(trace: dict[str, Any]) -> None:
    last = max(bar["ts"] + bar["dur"] for bar in of_kind(trace, "X"))
    assert last == pytest.approx(1e6 * trace["otherData"]["step_time_s"], abs=0.01)


def test_it_says_what_it_was_computed_from(trace: dict[str, Any]) -> None:
    keys = {"profile", "profile_sha256", "stack", "constants", "traincast"}
    assert keys <= trace["otherData"].keys()


def test_operators_are_named_inside_the_first_passes(trace: dict[str, Any]) -> None:
    operators = [bar for bar in of_kind(trace, "X") if bar["cat"] == "operator"]
    assert {bar["args"]["micro_batch"] for bar in operators} == {0, 1}
    assert {"attention.qkv", "head.loss"} <= {bar["name"] for bar in operators}


def test_arrows_lead_from_pass_to_transfer_to_pass_both_ways_and_to_the_optimizer() -> None:
    """64 micro-batches cross 3 boundaries of 4 stages; the ends reduce what they share."""
    scenario = EXAMPLES / "gpt-18b-gpipe.toml"
    trace = step_trace(traincast.simulate_step(scenario))
    counts = Counter(event["name"] for event in of_kind(trace, "s"))
    assert counts == {"forward": 2 * 3 * 64, "backward": 2 * 3 * 64, "gradients": 2}


def test_arrows_begin_and_end_on_bars(trace: dict[str, Any]) -> None:
    bars = {(bar["pid"], bar["tid"], bar["ts"]) for bar in of_kind(trace, "X")}
    ends = {(e["pid"], e["tid"], e["ts"]) for kind in "sf" for e in of_kind(trace, kind)}
    assert ends <= bars


def test_counters_hold_one_number_each_and_rise_in_time(trace: dict[str, Any]) -> None:
    times: dict[tuple[int, str], list[float]] = {}
    for event in of_kind(trace, "C"):
        (value,) = event["args"].values()
        assert isinstance(value, float)
        times.setdefault((event["pid"], event["name"]), []).append(event["ts"])
    assert all(found == sorted(set(found)) for found in times.values())


def test_the_memory_of_a_stage_peaks_where_its_table_says() -> None:
    scenario = EXAMPLES / "gpt-18b-gpipe.toml"
    result = traincast.simulate_step(scenario)
    levels: dict[int, list[float]] = {}
    for event in of_kind(traincast.trace_step(scenario, result), "C"):
        if event["name"] == "memory of tensors":
            levels.setdefault(event["pid"], []).append(event["args"]["GiB"])
    peaks = {use.stage: pytest.approx(use.allocated / 2**30, abs=1e-3) for use in result.memory}
    assert {stage: max(found) for stage, found in levels.items()} == peaks


def test_what_a_link_carries_is_a_counter_that_changes_with_its_rate() -> None:
    load = LoadCurve(times=(0.5, 1.0, 1.5, 2.0), rates=(3e9, 3e9, 0.0))
    shared = {"capacity": 5e9, "carried": 3e9, "full": 0.0}
    links = (
        LinkUse(name="a -> b", links=(4, 7, 9), load=load, **shared),
        LinkUse(name="b -> c", links=(5,), load=None, **shared),
    )
    step = traincast.simulate_step(EXAMPLES / "lan-ddp.toml")
    trace = step_trace(replace(step, links=links))
    counters = [(e["pid"], e["name"], e["ts"], e["args"]) for e in of_kind(trace, "C")]
    name = "a -> b and 2 alike"
    assert counters == [(1, name, 5e5, {"GB/s": 3.0}), (1, name, 1.5e6, {"GB/s": 0.0})]
    named = {
        e["pid"]: e["args"]["name"] for e in of_kind(trace, "M") if e["name"] == "process_name"
    }
    assert named == {0: "stage 0", 1: "network: each of the busiest links"}


def test_a_trace_without_recorded_links_has_no_process_for_them() -> None:
    trace = step_trace(traincast.simulate_step(EXAMPLES / "lan-ddp.toml"))
    names = [e["args"]["name"] for e in of_kind(trace, "M") if e["name"] == "process_name"]
    assert (names, of_kind(trace, "C")) == (["stage 0"], [])
