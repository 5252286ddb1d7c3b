"""Finds out what a device is and roughly does, before anything is planned."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import torch

from calibrate.batches import DeviceFacts
from calibrate.host_facts import available_memory, fingerprint_of_host
from calibrate.measure_device import Device, Work, device_of
from calibrate.measure_nvml import output_of
from calibrate.measure_tensors import random_tensor, torch_dtype
from calibrate.records import Fingerprint
from simulator.errors import Problem, UnsupportedError
from simulator.hardware.accelerator import Dtype

_CPU_SHARE = 0.25
"""Of float32's speed below which a CPU does a format by conversion, so that no one trains in it."""
_TRY_ROWS, _CPU_ROWS, _ROWS = 256, 512, 8192
"""Rows and columns of quick products: of formats that may be slow, of a CPU, of an accelerator."""
_RUNS = 5
_CPU_FORMATS = (Dtype.FP32, Dtype.BF16, Dtype.FP16)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""`nvidia-smi` underlines headings even where no terminal reads it."""
_AMPERE, _ADA = (8, 0), (8, 9)
"""Compute capabilities since which there are bf16 and TF32, and 8-bit products."""


def probe(
    device: str | torch.device = "",
    local_rank: int = 0,
    environment: Mapping[str, str] = os.environ,
) -> DeviceFacts:
    """Return what a device is and roughly does; `device` is read by `choose_device`.

    Raises:
        UnsupportedError: an accelerator is asked for and there is none.
    """
    chosen = choose_device(device, local_rank)
    used = device_of(chosen)
    with used.active(), torch.no_grad():
        formats, flops = _speed(used)
        return DeviceFacts(
            device="cpu" if chosen.type == "cpu" else "cuda",
            devices=1 if used.runtime is None else used.runtime.device_count(),
            memory=_free_memory(used),
            dtypes=formats,
            flops=flops,
            bandwidth=_bandwidth(used),
            fingerprint=fingerprint(used, environment),
        )


def choose_device(device: str | torch.device, local_rank: int = 0) -> torch.device:
    """Return the device of a process and make it the current one.

    "cpu", "cuda" (ROCm too) or empty: an accelerator where there is one. A device with an index is
    taken as it is; without one it is that of the local rank.

    Raises:
        UnsupportedError: an accelerator is asked for and there is none, or too few.
    """
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    wanted = torch.device(device or ("cuda" if found else "cpu"))
    if wanted.type == "cpu":
        return wanted
    index = local_rank if wanted.index is None else wanted.index
    if index >= found:
        rule, fix = f"needs accelerator {index}", "--device cpu, or fewer processes a node"
        seen = f"{found} that PyTorch {torch.__version__} can use"
        raise UnsupportedError(Problem(where="device", rule=rule, found=seen, fix=fix))
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def fingerprint(device: Device, environment: Mapping[str, str] = os.environ) -> Fingerprint:
    """Return the machine and the software, without what only all processes know together."""
    host = fingerprint_of_host(environment)
    host = host.model_copy(update={"torch": str(torch.__version__)})
    if device.runtime is None:
        return host
    properties = device.runtime.get_device_properties(device.torch_device)
    return host.model_copy(
        update={
            "accelerator": str(properties.name),
            "accelerator_memory": float(properties.total_memory),
            "accelerators_per_node": device.runtime.device_count(),
            "driver": _driver(),
            "library": _library(device.runtime),
            "topology": _topology(),
        }
    )


def _speed(device: Device) -> tuple[tuple[Dtype, ...], float]:
    """Return the number formats of products, the one that training uses first, and its FLOP/s.

    An accelerator's compute capability tells its formats; of a CPU's count those that are not much
    slower than float32.
    """
    if device.runtime is None:
        small = {dtype: _flops(device, dtype, _TRY_ROWS) for dtype in _CPU_FORMATS}
        least = _CPU_SHARE * small[Dtype.FP32]
        formats = tuple(dtype for dtype, rate in small.items() if rate >= least)
        return formats, _flops(device, Dtype.FP32, _CPU_ROWS)
    formats = _formats(device.runtime, device.torch_device)
    return formats, _flops(device, formats[0], _ROWS)


def _formats(runtime: Any, device: torch.device) -> tuple[Dtype, ...]:
    """Return the formats of an accelerator, the one that training uses first.

    AMD's 8-bit format is another one (fnuz) until MI350, so that ROCm's is left out.
    """
    if torch.version.hip is not None:
        return Dtype.BF16, Dtype.FP16, Dtype.FP32
    capability = runtime.get_device_capability(device)
    if capability < _AMPERE:
        return Dtype.FP16, Dtype.FP32
    narrow = (Dtype.FP8,) if capability >= _ADA else ()
    return Dtype.BF16, Dtype.FP16, *narrow, Dtype.TF32, Dtype.FP32


def _flops(device: Device, dtype: Dtype, rows: int) -> float:
    """Return the FLOP/s of a quick product of square matrices."""
    left, right = (random_tensor(device, torch_dtype(dtype), rows, rows) for _ in range(2))
    return 2.0 * rows**3 / _quick(device, lambda: left @ right)


def _bandwidth(device: Device) -> float:
    """Return the bytes/s, read and written, of a quick copy that no cache holds."""
    source = torch.zeros(int(device.cache) * 2, dtype=torch.uint8, device=device.torch_device)
    target = torch.empty_like(source)
    return 2.0 * source.numel() / _quick(device, lambda: target.copy_(source))


def _quick(device: Device, work: Work) -> float:
    """Return the seconds of the fastest of a few runs: what else runs only makes them slower."""
    return min(device.timed(work) for _ in range(_RUNS))


def _free_memory(device: Device) -> float:
    if device.runtime is None:
        return available_memory()
    return float(device.runtime.mem_get_info(device.torch_device)[0])


def _library(runtime: Any) -> str | None:
    """Return the version of NCCL, or of RCCL, which PyTorch calls by the same name."""
    try:
        version = runtime.nccl.version()
    except (AttributeError, RuntimeError):
        return None
    name = "RCCL" if torch.version.hip is not None else "NCCL"
    parts = version if isinstance(version, tuple) else (version,)
    return f"{name} {'.'.join(str(part) for part in parts)}"


def _driver() -> str | None:
    """Return the driver's version, of NVIDIA's or of ROCm's."""
    if torch.version.hip is not None:
        return f"HIP {torch.version.hip}"
    lines = output_of(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    return lines.splitlines()[0] if lines else None


def _topology() -> str | None:
    """Return how the devices of a node are linked, as the vendor's program prints it."""
    hip = torch.version.hip is not None
    command = ["rocm-smi", "--showtopo"] if hip else ["nvidia-smi", "topo", "-m"]
    return _COLOURS.sub("", output_of(command)) or None
