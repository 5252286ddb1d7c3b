"""The device that a worker measures: how to time work on it, and what memory it used.

One code path for the CPU and for accelerators: `Device` has a CUDA-like runtime (`torch.cuda`, also
of ROCm) or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from time import perf_counter
from typing import Any

import torch

from calibrate.host_facts import UNKNOWN_CACHE, cpu_cache
from calibrate.measuring import TooLargeError
from simulator.units import MS

Work = Callable[[], object]
"""Launches one run and does not wait for it."""
GRAPH_RUNS = 20
"""Least runs that one graph holds, so that its own launch (some 10 us) does not show."""
LAUNCHES_SHOW_BELOW = 1 * MS
"""Duration of a run from which a launch, some 10 us of CPU, is less than 1 % of it."""
COLD = 2.0
"""Copies over the size of the cache: with least-recently-used lines 1 is enough, and real caches
are not quite that."""
MOST_COPIES = 64
"""Smaller tensors than cache / 32 stay in it, as they would in a step."""
_WARM_RUNS = 3
"""Before a capture, so that libraries have made their handles and workspaces (PyTorch's notes on
CUDA graphs warm up with 3)."""


class Repeating(StrEnum):
    """How runs follow each other."""

    GRAPH = "graph"
    """A captured graph is launched: no CPU time between kernels."""
    LOOP = "loop"
    """The CPU launches each run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device of a process; make it with `device_of`."""

    torch_device: torch.device
    runtime: Any = None
    """`torch.cuda` or the like; None on the CPU."""
    stream: Any = None
    """What all work is launched on; the default stream cannot be captured."""

    def synchronize(self) -> None:
        """Return when the device has done all that was launched."""
        if self.runtime is not None:
            self.runtime.synchronize()

    def active(self) -> AbstractContextManager[object]:
        """Return a context in which work goes to this device's stream, out-of-memory caught."""
        return _working(self)

    def timed(self, launch: Work) -> float:
        """Return the seconds from the start to the end of what `launch` launches.

        Device time by events on an accelerator, wall time on the CPU.
        """
        if self.runtime is None:
            start = perf_counter()
            launch()
            return perf_counter() - start
        begin, end = (self.runtime.Event(enable_timing=True) for _ in range(2))
        begin.record()
        launch()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * MS

    def repeated(self, works: Sequence[Work], *, capture: bool = True) -> Repeated:
        """Return what runs `works` in turn: short ones from a captured graph where the device can.

        On an accelerator each has run before, the same number of times on every rank.
        """
        graph, held = None, len(works) * -(-GRAPH_RUNS // len(works))
        if self.runtime is not None and capture and self._are_short(works):
            graph = self._captured([works[i % len(works)] for i in range(held)])
        return Repeated(device=self, works=tuple(works), graph=graph, held=held)

    def reset_peaks(self) -> None:
        """Forget the largest memory seen so far."""
        if self.runtime is not None:
            self.runtime.reset_peak_memory_stats()

    def peaks(self) -> dict[str, float]:
        """Return the largest bytes allocated and reserved since `reset_peaks`; none on the CPU."""
        if self.runtime is None:
            return {}
        return {
            "peak_allocated": float(self.runtime.max_memory_allocated()),
            "peak_reserved": float(self.runtime.max_memory_reserved()),
        }

    @property
    def cache(self) -> float:
        """Bytes of the last-level cache; `UNKNOWN_CACHE` where nobody says."""
        if self.runtime is None:
            return cpu_cache()
        found = self.runtime.get_device_properties(self.torch_device)
        return float(getattr(found, "L2_cache_size", 0)) or UNKNOWN_CACHE

    def copies(self, size: float) -> int:
        """Return how many copies of `size` bytes to use in turn, so that each comes from memory.

        Together they are twice the cache. Weights are cold when a training step comes to them,
        and activations that fill more than the cache are too.
        """
        return min(MOST_COPIES, max(1, ceil(COLD * self.cache / size)))

    def release(self) -> None:
        """Give cached memory back, so that the next point finds it."""
        if self.runtime is not None:
            self.runtime.empty_cache()

    def _are_short(self, works: Sequence[Work]) -> bool:
        """Run each of `works` and return whether the CPU's launches would show in their time."""
        for index in range(max(_WARM_RUNS, len(works))):
            works[index % len(works)]()
        self.synchronize()
        return self.timed(works[0]) < LAUNCHES_SHOW_BELOW

    def _captured(self, works: Sequence[Work]) -> Any:
        """Return a graph of `works`, or None where one of them cannot be captured.

        Only this thread's calls can spoil the capture: a library's watchdog may go on asking.
        """
        graph = self.runtime.CUDAGraph()
        try:
            with self.runtime.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                for work in works:
                    work()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            self.synchronize()
            return None
        return graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """Runs some works in turn; called with a count it returns the seconds of that many runs."""

    device: Device
    works: tuple[Work, ...]
    graph: Any
    held: int
    """Runs that the graph holds."""

    @property
    def how(self) -> Repeating:
        """Whether runs come from a graph."""
        return Repeating.LOOP if self.graph is None else Repeating.GRAPH

    def __call__(self, runs: int) -> float:
        """Return the seconds of `runs` runs back to back; of whole graphs, in proportion."""
        if self.graph is None:
            return self.device.timed(lambda: self._loop(runs))
        replays = -(-runs // self.held)
        return self.device.timed(lambda: self._replay(replays)) * runs / (replays * self.held)

    def _loop(self, runs: int) -> None:
        works, count = self.works, len(self.works)
        for index in range(runs):
            works[index % count]()

    def _replay(self, times: int) -> None:
        for _ in range(times):
            self.graph.replay()


def device_of(device: torch.device) -> Device:
    """Return a torch device, "cpu" or "cuda" (with or without index), with what times it."""
    if device.type == "cpu":
        return Device(torch_device=device)
    runtime: Any = torch.cuda
    return Device(torch_device=device, runtime=runtime, stream=runtime.Stream(device))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory ran out, on an accelerator or on the CPU."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    words = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in words)


@contextmanager
def _working(device: Device) -> Iterator[None]:
    try:
        with nullcontext() if device.runtime is None else device.runtime.stream(device.stream):
            yield
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise TooLargeError(str(error).partition("\n")[0]) from error
        raise
    finally:
        device.release()
