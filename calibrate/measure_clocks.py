"""Watches clock, power and heat of an accelerator while a point runs: NVML, or `nvidia-smi`."""

from __future__ import annotations

from threading import Event, Thread
from types import TracebackType

import torch

from calibrate.clock_samples import Sample, summarise
from calibrate.measure_nvml import PROGRAM_SECONDS, Source, source_of
from calibrate.records import Clocks


class ClockWatch:
    """Samples a device in a thread from entering to leaving; on a CPU it does nothing."""

    def __init__(self, device: torch.device, source: Source | None = None) -> None:
        self._source = source_of(device) if source is None else source
        self._samples: list[Sample] = []
        self._stop = Event()
        self._thread: Thread | None = None

    def __enter__(self) -> ClockWatch:
        if self._source is not None:
            self._thread = Thread(target=self._watch, name="clocks", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(PROGRAM_SECONDS)

    @property
    def ended(self) -> bool:
        """Whether no thread samples any more."""
        return self._thread is None or not self._thread.is_alive()

    def clocks(self) -> Clocks | None:
        """Return what was seen; None where nothing could be asked."""
        return summarise(tuple(self._samples))

    def _watch(self) -> None:
        assert self._source is not None
        while True:
            sample = self._source.look()
            if sample is not None:
                self._samples.append(sample)
            if self._stop.wait(self._source.interval):
                return
