"""One code path for CPU and accelerators, up to the device: here it is made up."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from calibrate.host_facts import UNKNOWN_CACHE, cpu_cache  # noqa: E402
from calibrate.measure_device import (  # noqa: E402
    Device,
    Repeating,
    device_of,
    is_out_of_memory,
)
from calibrate.measuring import TooLargeError  # noqa: E402

SECONDS = 1e-4
"""Of one launch in the made-up runtime, from a graph or not."""


@dataclass(slots=True)
class Event:
    """Reads the runtime's clock where it is recorded."""

    runtime: Runtime
    at: float = 0.0

    def record(self) -> None:
        self.at = self.runtime.now

    def synchronize(self) -> None:
        self.runtime.calls.append("event.synchronize")

    def elapsed_time(self, end: Event) -> float:
        return 1e3 * (end.at - self.at)


@dataclass(slots=True)
class Graph:
    """Replays as many launches as were captured."""

    runtime: Runtime
    held: int = 0

    def replay(self) -> None:
        self.runtime.now += self.held * SECONDS
        self.runtime.calls.append(f"replay {self.held}")


@dataclass(slots=True)
class Runtime:
    """What `torch.cuda` offers, on a clock that only launches move."""

    captures: bool = True
    seconds: float = SECONDS
    now: float = 0.0
    capturing: Graph | None = None
    calls: list[str] = field(default_factory=list)
    OutOfMemoryError: type[Exception] = torch.OutOfMemoryError

    def Event(self, *, enable_timing: bool) -> Event:  # noqa: N802
        assert enable_timing
        return Event(self)

    def CUDAGraph(self) -> Graph:  # noqa: N802
        return Graph(self)

    def graph(
        self, graph: Graph, *, stream: object, capture_error_mode: str
    ) -> AbstractContextManager[None]:
        assert (stream, capture_error_mode) == ("side stream", "thread_local")
        return _Capture(self, graph)

    def stream(self, stream: object) -> AbstractContextManager[None]:
        self.calls.append(f"on {stream}")
        return nullcontext()

    def synchronize(self) -> None:
        self.calls.append("synchronize")

    def empty_cache(self) -> None:
        self.calls.append("empty_cache")

    def launch(self) -> None:
        if self.capturing is None:
            self.now += self.seconds
        elif self.captures:
            self.capturing.held += 1
        else:
            raise RuntimeError("operation not permitted when stream is capturing")


@dataclass(slots=True)
class _Capture(AbstractContextManager[None]):
    runtime: Runtime
    graph: Graph

    def __enter__(self) -> None:
        self.runtime.capturing = self.graph

    def __exit__(self, *_: object) -> None:
        self.runtime.capturing = None


def accelerator(runtime: Runtime) -> Device:
    made: Any = runtime
    return Device(torch_device=torch.device("cuda", 0), runtime=made, stream="side stream")


def test_runs_come_from_a_graph_of_at_least_twenty() -> None:
    runtime = Runtime()
    run = accelerator(runtime).repeated([runtime.launch] * 3)
    runtime.calls.clear()

    assert run.how is Repeating.GRAPH
    # Seven turns of three works are 21 runs; for 42 runs it is launched twice.
    assert run(42) == pytest.approx(42 * SECONDS)
    assert runtime.calls == ["replay 21", "replay 21", "event.synchronize"]


def test_a_part_of_a_graph_is_timed_in_proportion() -> None:
    runtime = Runtime()
    run = accelerator(runtime).repeated([runtime.launch])

    assert run(5) == pytest.approx(5 * SECONDS)


def test_what_cannot_be_captured_is_launched_by_the_cpu() -> None:
    runtime = Runtime(captures=False)
    run = accelerator(runtime).repeated([runtime.launch])

    assert run.how is Repeating.LOOP
    assert run(7) == pytest.approx(7 * SECONDS)


def test_long_runs_are_not_captured_as_their_launches_do_not_show() -> None:
    runtime = Runtime(seconds=2e-3)
    run = accelerator(runtime).repeated([runtime.launch])

    assert run.how is Repeating.LOOP
    assert runtime.now == pytest.approx(4 * 2e-3)


def test_every_work_has_run_before_it_is_captured() -> None:
    runtime = Runtime()
    before: set[int] = set()

    def work(number: int) -> None:
        assert number in before or runtime.capturing is None
        before.add(number)
        runtime.launch()

    run = accelerator(runtime).repeated([partial(work, number) for number in range(9)])
    assert (run.how, run.held, len(before)) == (Repeating.GRAPH, 27, 9)


def test_memory_that_runs_out_in_a_capture_is_not_taken_for_a_missing_graph() -> None:
    runtime = Runtime()
    launched: list[int] = []

    def hungry() -> None:
        launched.append(1)
        if runtime.capturing is not None:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    with pytest.raises(TooLargeError, match="Tried to allocate"), accelerator(runtime).active():
        accelerator(runtime).repeated([hungry])


def test_work_goes_to_the_side_stream_and_memory_is_given_back() -> None:
    runtime = Runtime()
    with accelerator(runtime).active():
        runtime.launch()

    assert runtime.calls == ["on side stream", "empty_cache"]


def test_works_take_turns_on_the_cpu() -> None:
    order: list[str] = []
    run = device_of(torch.device("cpu")).repeated(
        [lambda: order.append("a"), lambda: order.append("b")]
    )

    assert run(3) > 0
    assert order == ["a", "b", "a"]
    assert run.how is Repeating.LOOP


def test_a_cpu_reports_no_memory_peaks() -> None:
    device = device_of(torch.device("cpu"))
    device.reset_peaks()

    assert device.peaks() == {}


def test_other_errors_are_not_taken_for_out_of_memory() -> None:
    with pytest.raises(RuntimeError, match="shapes"), device_of(torch.device("cpu")).active():
        raise RuntimeError("shapes do not match")
    assert not is_out_of_memory(ValueError("out of memory"))


def test_a_cpu_that_cannot_allocate_says_too_large() -> None:
    device = device_of(torch.device("cpu"))
    with pytest.raises(TooLargeError), device.active():
        torch.empty(2**60, dtype=torch.uint8)


def test_the_largest_cache_of_a_cpu_counts(tmp_path: Path) -> None:
    for index, size in enumerate(("32K", "1024K", "32768K")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(f"{size}\n")

    assert cpu_cache(tmp_path) == 32 * 2**20
    assert cpu_cache(tmp_path / "nowhere") == UNKNOWN_CACHE


def test_small_tensors_are_copied_until_no_cache_holds_them() -> None:
    device = device_of(torch.device("cpu"))

    assert device.copies(device.cache / 4) == 8
    assert device.copies(100 * device.cache) == 1
    assert device.copies(1.0) == 64
