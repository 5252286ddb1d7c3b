"""Traces keep to the Trace Event Format and show what was simulated."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import traincast
from reports.trace import step_trace
from simulator.results import LinkUse, LoadCurve
from traincast.forecasts import step_file

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = [
    *("gpt-18b-gpipe", "llama3-70b-64-h100-oversubscribed"),
    *("llama3.1-8b-fsdp", "lan-parameter-server", "llama3-70b-64-gb200-offload"),
]
REQUIRED = {
    "M": {"name", "pid", "args"},
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
        while stack and stack[-1] <= bar["ts"] + 1e-6:
            stack.pop()
        assert not stack or bar["ts"] + bar["dur"] <= stack[-1] + 1e-6, bar
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


def arrows_of(name: str) -> Counter[str]:
    scenario = EXAMPLES / f"{name}.toml"
    trace = traincast.trace_step(scenario, traincast.simulate_step(scenario))
    return Counter(event["name"] for event in of_kind(trace, "s"))


def test_a_tensor_parallel_step_joins_its_all_reduces() -> None:
    """40 layers recompute all: 2 all-reduces forward, again, and backward, each joined twice.

    Beside them the embedding's and the head's two, of which the loss's ends its pass. All of that
    in the 2 micro-batches that are shown operator by operator.
    """
    assert arrows_of("gpt-18b-gpipe") == {
        "forward": 2 * 3 * 64,
        "backward": 2 * 3 * 64 + 64,
        # Each stage's pass; the tied embedding waits for both ends, and both ends for it.
        "gradients": 4 + 2 * 2 + 2,
        "gradient norm": 3,
        "collective": 2 * (40 * (2 + 2 + 2) * 2 + 2 + 1 + 2),
    }


def test_a_step_of_experts_joins_its_all_to_alls() -> None:
    """32 layers in 32 chunks on 4 stages: counts, dispatch, combine, and two of them backward."""
    assert arrows_of("mixtral-8x7b-64-h100") == {
        "forward": 2 * 31 * 16,
        "backward": 2 * 31 * 16 + 16,
        "parameters": 32,
        "gradients": 32 + 32,
        "gradient norm": 3,
        "collective": 2 * 32 * (3 + 2) * 2,
    }


def test_arrows_begin_and_end_on_bars(trace: dict[str, Any]) -> None:
    bars = {(bar["pid"], bar["tid"], bar["ts"]) for bar in of_kind(trace, "X")}
    ends = {(e["pid"], e["tid"], e["ts"]) for kind in "sf" for e in of_kind(trace, kind)}
    assert ends <= bars


def test_arrows_belong_to_the_bars_that_they_join(trace: dict[str, Any]) -> None:
    """An end belongs to the innermost bar that is open on its thread when the file is read so far.

    Between operators and collectives inside passes those are of both kinds; else none of them.
    """
    stacks: dict[tuple[int, int], Events] = {}
    wrong = []
    for event in trace["traceEvents"]:
        stack = stacks.setdefault((event["pid"], event.get("tid", 0)), [])
        if event["ph"] == "X":
            while stack and stack[-1]["ts"] + stack[-1]["dur"] <= event["ts"] + 1e-6:
                stack.pop()
            stack.append(event)
        elif event["ph"] in "sf":
            inside = stack[-1]["cat"] in {"operator", "collective"}
            right = inside == (event["name"] == "collective") and stack[-1]["ts"] == event["ts"]
            wrong += [] if right else [event]
    assert wrong == []


def test_what_waits_begins_when_the_other_has_ended(trace: dict[str, Any]) -> None:
    ends: dict[tuple[int, int, float], list[float]] = {}
    for bar in of_kind(trace, "X"):
        ends.setdefault((bar["pid"], bar["tid"], bar["ts"]), []).append(bar["ts"] + bar["dur"])
    begins = {event["id"]: event["ts"] for event in of_kind(trace, "f")}
    early = [
        event
        for event in of_kind(trace, "s")
        if min(ends[event["pid"], event["tid"], event["ts"]]) > begins[event["id"]] + 1e-6
    ]
    assert early == []


def test_counters_are_the_curves_of_the_result() -> None:
    scenario = EXAMPLES / "llama3-70b-64-h100-oversubscribed.toml"
    result = traincast.simulate_step(scenario)
    record = step_file(scenario, result)
    found: dict[tuple[str, int | str], list[tuple[float, float]]] = {}
    trace = traincast.trace_step(scenario, result)
    for event in of_kind(trace, "C"):
        ((unit, value),) = event["args"].items()
        key: int | str = event["pid"] - 1 if unit == "GiB" else event["name"]
        found.setdefault((unit, key), []).append((event["ts"], value))
    memory: dict[tuple[str, int | str], list[tuple[float, float]]] = {
        ("GiB", curve["stage"]): [
            (round(1e6 * time, 3), round(level / 2**30, 3))
            for time, level in zip(curve["time_s"], curve["allocated_bytes"], strict=True)
        ]
        for curve in record["memory_curves"]
    }
    links = {key: points for key, points in found.items() if key[0] == "GB/s"}
    assert {key: points for key, points in found.items() if key[0] == "GiB"} == memory
    # A GB/s for a microsecond is 1,000 bytes.
    carried = {
        str(name): 1e3 * sum(rate * (stop - start) for (start, rate), (stop, _) in pairwise(points))
        for (_, name), points in links.items()
    }
    said = {
        f"{use.name} and {use.count - 1} alike": use.carried for use in result.links if use.load
    }
    assert carried == pytest.approx(said, rel=1e-3)


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
            levels.setdefault(event["pid"] - 1, []).append(event["args"]["GiB"])
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
    assert counters == [(2, name, 5e5, {"GB/s": 3.0}), (2, name, 1.5e6, {"GB/s": 0.0})]
    named = {
        e["pid"]: e["args"]["name"] for e in of_kind(trace, "M") if e["name"] == "process_name"
    }
    assert named == {1: "stage 0, ranks 0 to 3", 2: "network: each of the busiest links"}


def test_a_trace_without_recorded_links_has_no_process_for_them() -> None:
    trace = step_trace(traincast.simulate_step(EXAMPLES / "lan-ddp.toml"))
    names = [e["args"]["name"] for e in of_kind(trace, "M") if e["name"] == "process_name"]
    assert (names, of_kind(trace, "C")) == (["stage 0, ranks 0 to 3"], [])
