"""What the operating system says of a host: CPU, memory, variables that change measurements."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from calibrate.records import Fingerprint
from simulator.units import KIB, MIB

PREFIXES = (
    "NCCL_",
    "RCCL_",
    "GLOO_",
    "CUDA_",
    "CUBLAS",
    "NVIDIA_",
    "HIP_",
    "HSA_",
    "ROCR_",
    "OMP_",
    "MKL_",
    "TORCH_",
    "PYTORCH_",
)
"""Of the environment variables that change what is measured."""
_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD")
"""In the name of a variable whose value is nobody's business; none changes a measurement."""
_HARMLESS = ("VISIBLE_DEVICES", "_DEBUG")
"""In the name of a variable that only says which device is used, or what is logged."""
UNKNOWN_CACHE = 64 * MIB
"""Of a device that does not say; between an A100's 40 and a B200's 126 MiB."""
_CACHE_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")
_MEMORY_FILE = Path("/proc/meminfo")
_CPU_FILE = Path("/proc/cpuinfo")
_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_GROUP_USE = Path("/sys/fs/cgroup/memory.current")


def fingerprint_of_host(environment: Mapping[str, str]) -> Fingerprint:
    """Return a fingerprint of the host alone; memory is that of the host."""
    return Fingerprint(
        accelerator_memory=_meminfo("MemTotal"),
        cpu=cpu_name(),
        kernel=f"{platform.system()} {platform.release()}",
        environment=telling_variables(environment),
    )


def telling_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that change what is measured, sorted; no secrets.

    >>> telling_variables({"NCCL_ALGO": "Ring", "HOME": "/", "TORCH_TOKEN": "x"})
    {'NCCL_ALGO': 'Ring'}
    """
    return {
        name: value
        for name, value in sorted(environment.items())
        if name.startswith(PREFIXES)
        and not any(word in name.upper() for word in (*_SECRET, *_HARMLESS))
    }


def cpu_name(file: Path = _CPU_FILE) -> str | None:
    """Return the model of the CPU, with how many of its cores this process may use."""
    name = platform.processor() or platform.machine()
    if file.is_file():
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        name = models[0] if models else name
    return f"{name}, {usable_cores()} cores" if name else None


def usable_cores() -> int:
    """Return the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> float:
    """Return the bytes that can be taken now, by the host and by the limit of a container."""
    free = _meminfo("MemAvailable")
    if free is None:
        free = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    limit, used = _number(_GROUP_LIMIT), _number(_GROUP_USE)
    return free if limit is None else min(free, max(limit - (used or 0.0), 1.0))


def cpu_cache(folder: Path = _CACHE_FOLDER) -> float:
    """Return the bytes of the largest cache of a CPU, which Linux writes as "32768K"."""
    sizes = [file.read_text().strip() for file in folder.glob("index*/size")]
    return max((KIB * int(s[:-1]) for s in sizes if s.endswith("K")), default=0.0) or UNKNOWN_CACHE


def _meminfo(key: str, file: Path = _MEMORY_FILE) -> float | None:
    """Return an entry of Linux's table of memory in bytes; None where there is none."""
    if not file.is_file():
        return None
    entries = dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
    found = entries.get(key, "").split()
    return KIB * float(found[0]) if found else None


def _number(file: Path) -> float | None:
    """Return the number in a file; None without the file, and for "max"."""
    try:
        return float(file.read_text())
    except (OSError, ValueError):
        return None
