"""Launch costs, the soak and the facts of this machine, and clocks that are made up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")

from calibrate.clock_samples import Sample, summarise  # noqa: E402
from calibrate.host_facts import cpu_name, telling_variables  # noqa: E402
from calibrate.limits import Limits  # noqa: E402
from calibrate.measure_clocks import ClockWatch  # noqa: E402
from calibrate.measure_context import Context  # noqa: E402
from calibrate.measure_facts import choose_device, probe  # noqa: E402
from calibrate.measure_host import measure_launch, measure_soak  # noqa: E402
from calibrate.measure_nvml import Source, nvml_source, output_of, program_source  # noqa: E402
from calibrate.points import Launch, LaunchPoint, SoakPoint  # noqa: E402
from calibrate.records import Clocks  # noqa: E402
from simulator.errors import UnsupportedError  # noqa: E402
from simulator.hardware.accelerator import Dtype  # noqa: E402

CPU = torch.device("cpu")
CONTEXT = Context(device=CPU, limits=Limits(block_seconds=2e-3, blocks=3, max_seconds=0.1))
NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="tells what is said without a GPU")


@contextmanager
def one_rank_group() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


def test_a_kernel_launch_takes_microseconds() -> None:
    outcome = measure_launch(LaunchPoint(launch=Launch.KERNEL), CONTEXT)

    assert 1e-7 < outcome.seconds < 1e-2


def test_a_collective_launch_needs_a_process_group() -> None:
    with pytest.raises(UnsupportedError, match="calibrate launch"):
        measure_launch(LaunchPoint(launch=Launch.COLLECTIVE), CONTEXT)


def test_a_collective_launch_is_measured_in_a_group_of_one() -> None:
    with one_rank_group():
        outcome = measure_launch(LaunchPoint(launch=Launch.COLLECTIVE), CONTEXT)

    assert 1e-7 < outcome.seconds < 1e-1


def test_a_soak_tells_its_first_and_last_speed() -> None:
    outcome = measure_soak(SoakPoint(dtype=Dtype.FP32, duration=0.3), CONTEXT)

    assert set(outcome.values) == {"flops", "first_seconds", "last_seconds"}
    size = round((outcome.values["flops"] * outcome.seconds / 2) ** (1 / 3))
    assert size in (512, 1024, 2048, 4096, 8192)
    assert outcome.values["last_seconds"] == outcome.seconds


def test_the_facts_of_a_cpu_are_found() -> None:
    facts = probe("cpu", environment={"OMP_NUM_THREADS": "2", "HOME": "/home/someone"})

    assert (facts.device, facts.devices, facts.dtypes[0]) == ("cpu", 1, Dtype.FP32)
    assert facts.flops > 1e8
    assert facts.bandwidth is not None
    assert facts.bandwidth > 1e8
    assert facts.fingerprint.accelerator is None
    assert facts.fingerprint.cpu
    assert facts.fingerprint.torch == torch.__version__
    assert facts.fingerprint.environment == {"OMP_NUM_THREADS": "2"}


@NO_GPU
def test_an_accelerator_that_is_not_there_is_refused_and_the_cpu_is_the_default() -> None:
    with pytest.raises(UnsupportedError, match="--device cpu"):
        choose_device("cuda", 1)
    assert choose_device("") == CPU


def test_variables_that_hold_secrets_or_choose_devices_are_left_out() -> None:
    given = {
        "NCCL_ALGO": "Ring",
        "NCCL_DEBUG": "INFO",
        "CUDA_VISIBLE_DEVICES": "3",
        "TORCH_HUB_TOKEN": "abc",
        "PATH": "/bin",
    }

    assert telling_variables(given) == {"NCCL_ALGO": "Ring"}


def test_the_cpu_is_named_with_the_cores_that_may_be_used(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("processor : 0\nmodel name : Made-up 9000\nprocessor : 1\nmodel name : other\n")

    name = cpu_name(file)
    assert name is not None
    assert name.startswith("Made-up 9000, ")
    assert name.endswith(" cores")


def test_samples_become_median_mean_and_highest() -> None:
    samples = [
        Sample(sm_clock=1.9e9, power=600.0, temperature=50.0, throttle=0x1),
        Sample(sm_clock=1.7e9, power=700.0, temperature=60.0, throttle=0x4, ecc_errors=0),
        Sample(sm_clock=1.8e9, power=None, temperature=55.0, throttle=0x44, ecc_errors=2),
    ]

    assert summarise(samples) == Clocks(
        sm_clock=1.8e9,
        power=650.0,
        temperature=60.0,
        throttle=("sw_power_cap", "hw_thermal_slowdown"),
        ecc_errors=2,
    )
    assert summarise([]) is None


class NvmlError(Exception):
    """As NVML's binding raises it."""


@dataclass(slots=True)
class Nvml:
    """NVIDIA's binding for one device without ECC."""

    uuid: str
    NVMLError: type[Exception] = NvmlError
    NVML_CLOCK_SM: int = 1
    NVML_TEMPERATURE_GPU: int = 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED: int = 1
    NVML_VOLATILE_ECC: int = 0

    def nvmlInit(self) -> None:  # noqa: N802
        return

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        if uuid != self.uuid:
            raise NvmlError
        return "handle"

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:  # noqa: N802
        assert (handle, kind) == ("handle", self.NVML_CLOCK_SM)
        return 1980

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:  # noqa: N802
        return 612_500

    def nvmlDeviceGetTemperature(self, handle: str, kind: int) -> int:  # noqa: N802
        return 54

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:  # noqa: N802
        return 0x4

    def nvmlDeviceGetTotalEccErrors(self, handle: str, kind: int, counter: int) -> int:  # noqa: N802
        raise NvmlError


def test_nvml_is_read_in_hertz_and_watts_and_what_it_lacks_is_not_known() -> None:
    source = nvml_source(Nvml("GPU-1"), "GPU-1")

    assert source is not None
    assert source.look() == Sample(
        sm_clock=1.98e9, power=612.5, temperature=54.0, throttle=0x4, ecc_errors=None
    )


def test_a_device_that_nvml_does_not_know_has_no_source() -> None:
    assert nvml_source(Nvml("GPU-1"), "GPU-2") is None
    assert nvml_source(None, "GPU-1") is None


def _program(tmp_path: Path, body: str) -> str:
    file = tmp_path / "nvidia-smi"
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return str(file)


def test_the_program_is_asked_where_there_is_no_library(tmp_path: Path) -> None:
    source = program_source(_program(tmp_path, "echo '1410, 300.10, 61, 0x0, 0'"), "GPU-1")

    assert source is not None
    assert source.look() == Sample(sm_clock=1.41e9, power=300.1, temperature=61.0, ecc_errors=0)


@pytest.mark.parametrize("body", ["exit 9", "true"])
def test_a_program_that_says_nothing_is_no_source(tmp_path: Path, body: str) -> None:
    assert program_source(_program(tmp_path, body), "GPU-1") is None
    assert program_source(None, "GPU-1") is None
    assert output_of([str(tmp_path / "missing")]) == ""


@dataclass(slots=True)
class Looks:
    """Counts how often it is asked."""

    times: list[int] = field(default_factory=list)

    def __call__(self) -> Sample | None:
        self.times.append(1)
        return Sample(sm_clock=1e9) if len(self.times) > 1 else None


def test_clocks_are_watched_while_something_runs() -> None:
    looks = Looks()
    with ClockWatch(CPU, Source(look=looks, interval=1e-3)) as watch:
        while len(looks.times) < 3:
            pass

    assert watch.clocks() == Clocks(sm_clock=1e9)
    assert watch.ended


def test_a_cpu_has_no_clocks_to_watch() -> None:
    with ClockWatch(CPU) as watch:
        pass

    assert watch.clocks() is None


def test_a_watch_ends_although_the_work_raises() -> None:
    looks: Any = Looks()
    watch = ClockWatch(CPU, Source(look=looks, interval=1e-3))
    with pytest.raises(ZeroDivisionError), watch:
        _ = 1 // 0

    assert watch.ended
