"""JSON that nccl-tests writes (`-J`), as runs of samples."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calibrate.import_json import ArrayStream
from calibrate.import_nccl_facts import benchmark_facts, library_of_code
from calibrate.import_rccl_rows import runs_of_entries
from calibrate.import_samples import Device, Facts, Printed, Run, Sample, printed, printed_size
from calibrate.import_words import wire_dtype
from simulator.units import GB, US

_KEPT = re.compile(r"(?:NCCL|RCCL|GLOO|CUDA|OMP|TORCH|HSA)_")
_MOST_DEVICES = 1024
"""Of one process."""


def runs_of_json(text: str) -> tuple[Run, ...] | None:
    """Return the runs of a JSON file of either; None where it is of neither."""
    if text.lstrip().startswith("["):
        return runs_of_entries(text)
    stream = ArrayStream(io.StringIO(text), "results", digits=True)
    results = list(stream)
    if not stream.found or not {"config", "args", "nccl_version"} & set(stream.frame):
        return None
    facts = _facts(stream.frame)
    samples = [
        sample
        for place, entry in enumerate(results, start=1)
        for sample in _samples_of_entry(entry, place)
    ]
    notes = [(0, "the file is cut off: its last results are lost")] if stream.cut else []
    timed = [s for s in samples if s.bytes > 0]
    places = (entry.get("out_of_place") for entry in results)
    cpu = any(isinstance(place, dict) and "cpu_time" in place for place in places)
    return (Run(facts=facts, samples=tuple(timed), notes=tuple(notes), cpu_time=cpu),)


def _facts(frame: Mapping[str, Any]) -> Facts:
    """Return what the JSON of nccl-tests says of the machine.

    Of each process only its first device is listed.
    """
    config = frame.get("config")
    config = config if isinstance(config, dict) else {}
    threads, gpus = (_positive(config.get(key)) or 1 for key in ("nthreads", "ngpus"))
    listed = config.get("devices")
    listed = listed if isinstance(listed, list) else []
    devices = [_device(entry) for entry in listed if isinstance(entry, dict)]
    driven = threads * gpus
    every = tuple(
        replace(device, rank=device.rank + i, index=f"{device.index}+{i}")
        for device in devices
        for i in range(min(driven, _MOST_DEVICES))
    )
    arguments = frame.get("args")
    name = str(arguments[0]) if isinstance(arguments, list) and arguments else ""
    code = frame.get("nccl_version")
    facts = Facts(
        devices=every,
        threads=threads,
        gpus=gpus,
        library=library_of_code(code) if isinstance(code, int) and code > 0 else None,
        environment=_environment(frame.get("env")),
        isolated=config.get("blocking_collectives") == "true",
    )
    return benchmark_facts(facts, name)


def _device(entry: Mapping[str, Any]) -> Device:
    return Device(
        rank=_whole(entry.get("rank")),
        group=_whole(entry.get("group")),
        host=str(entry.get("hostname", "")),
        index=str(entry.get("device", "")),
        name=str(entry.get("device_info", "")).strip(),
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _environment(entries: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(entries, list):
        return ()
    pairs = (str(entry).partition("=") for entry in entries)
    return tuple(sorted({name: value for name, _, value in pairs if _KEPT.match(name)}.items()))


def _samples_of_entry(entry: Mapping[str, Any], place: int) -> list[Sample]:
    """Return the samples of one result of nccl-tests; numbers there have six decimals."""
    found = []
    for key, in_place in (("out_of_place", False), ("in_place", True)):
        result = entry.get(key)
        if not isinstance(result, dict):
            continue
        time = printed(str(result.get("time", result.get("cpu_time", ""))))
        size = printed_size(str(entry.get("size", "")))
        if time is None or size is None:
            continue
        dtype, root = str(entry.get("type", "")), printed(str(entry.get("root", "")).strip())
        count, wrong = printed(str(entry.get("count", ""))), printed(str(result.get("nwrong")))
        named = wire_dtype(dtype)
        found.append(
            Sample(
                line=place,
                bytes=size,
                time=time.times(US),
                in_place=in_place,
                count=count.value if count else None,
                dtype=named[0] if named else dtype,
                redop=str(entry.get("redop", "")).lower(),
                root=int(root.value) if root else None,
                algbw=_rate(str(result.get("alg_bw", ""))),
                busbw=_rate(str(result.get("bus_bw", ""))),
                wrong=wrong.value if wrong else None,
            )
        )
    return found


def _rate(text: str) -> Printed | None:
    number = printed(text.strip())
    return None if number is None else number.times(GB)
