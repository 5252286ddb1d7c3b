"""Asks NVML, or else `nvidia-smi`, what an accelerator's clock, power and heat are."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeVar

import torch

from calibrate.clock_samples import QUERY, Sample, parse_line

PROGRAM_SECONDS = 10.0
"""After which `nvidia-smi` is given up."""
_MHZ, _MILLIWATT = 1e6, 1e-3
_INTERVAL = 0.2
"""Seconds between two samples; NVML renews its power reading about every 0.1 s."""
_SLOW_INTERVAL = 1.0
"""The same where each sample is a process."""
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where samples of one device come from."""

    look: Callable[[], Sample | None]
    """One sample; None where it fails."""
    interval: float = _INTERVAL
    """Seconds to wait between two."""


@lru_cache(maxsize=8)
def source_of(device: torch.device) -> Source | None:
    """Return how to look at a device; None of a CPU, and where nothing can say."""
    if device.type == "cpu":
        return None
    name = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    if name is None:
        return None
    uuid = f"GPU-{name}"
    return nvml_source(_nvml(), uuid) or program_source(shutil.which("nvidia-smi"), uuid)


def nvml_source(nvml: Any, uuid: str) -> Source | None:
    """Return the source of a device by its UUID; None without the library or the device."""
    if nvml is None:
        return None
    try:
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
    except nvml.NVMLError:
        return None
    return Source(look=lambda: _sample(nvml, handle))


def program_source(program: str | None, uuid: str) -> Source | None:
    """Return the source that starts `nvidia-smi` for each sample; None where it says nothing."""
    if program is None:
        return None
    command = [program, f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"]

    def look() -> Sample | None:
        text = output_of([*command, f"--id={uuid}"])
        return parse_line(text) if text else None

    return Source(look=look, interval=_SLOW_INTERVAL) if look() is not None else None


def output_of(command: list[str]) -> str:
    """Return what a program prints; nothing where it fails, is missing or takes too long."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    return done.stdout.strip()


def _nvml() -> Any:
    """Return NVIDIA's binding of the library (nvidia-ml-py), or None where it is not installed."""
    with warnings.catch_warnings():
        # An old package of the same module name warns that it is deprecated.
        warnings.simplefilter("ignore")
        try:
            return import_module("pynvml")
        except ImportError:
            return None


def _sample(nvml: Any, handle: Any) -> Sample:
    def ask(question: Callable[[], _Value]) -> _Value | None:
        try:
            return question()
        except nvml.NVMLError:
            return None

    clock = ask(lambda: float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)))
    power = ask(lambda: float(nvml.nvmlDeviceGetPowerUsage(handle)))
    return Sample(
        sm_clock=None if clock is None else clock * _MHZ,
        power=None if power is None else power * _MILLIWATT,
        temperature=ask(
            lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        ),
        throttle=ask(lambda: int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))) or 0,
        ecc_errors=ask(
            lambda: int(
                nvml.nvmlDeviceGetTotalEccErrors(
                    handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
                )
            )
        ),
    )
