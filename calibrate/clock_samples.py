"""Samples of a device's clock, power and heat: what its management library or program says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from calibrate.records import Clocks

QUERY = (
    "clocks.sm",
    "power.draw",
    "temperature.gpu",
    "clocks_throttle_reasons.active",
    "ecc.errors.uncorrected.volatile.total",
)
"""What `nvidia-smi --query-gpu` is asked for."""
_MHZ = 1e6
REASONS = {
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
"""Bits of `nvmlClocksThrottleReasons` (nvml.h), but for 0x1, which says that the GPU is idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at a device; None is not known."""

    sm_clock: float | None = None
    """Hz."""
    power: float | None = None
    """Watts."""
    temperature: float | None = None
    """Degrees Celsius."""
    throttle: int = 0
    """Bits of `REASONS`."""
    ecc_errors: int | None = None


def summarise(samples: Sequence[Sample]) -> Clocks | None:
    """Return median clock, mean power, highest temperature and all reasons; None of no samples."""
    if not samples:
        return None
    errors = _known(samples, lambda sample: sample.ecc_errors)
    active = {bit for sample in samples for bit in REASONS if sample.throttle & bit}
    return Clocks(
        sm_clock=_of(median, _known(samples, lambda sample: sample.sm_clock)),
        power=_of(fmean, _known(samples, lambda sample: sample.power)),
        temperature=_of(max, _known(samples, lambda sample: sample.temperature)),
        throttle=tuple(REASONS[bit] for bit in sorted(active)),
        ecc_errors=int(max(errors)) if errors else None,
    )


def parse_line(line: str) -> Sample:
    """Return the sample in a line of `nvidia-smi`'s CSV; what it does not know is None.

    >>> sample = parse_line("1980, 612.53, 54, 0x0000000000000004, [N/A]")
    >>> sample.sm_clock, sample.power, sample.throttle, sample.ecc_errors
    (1980000000.0, 612.53, 4, None)
    """
    fields = [field.strip() for field in line.split(",")]
    clock, power, heat, throttle, errors = (*fields, *[""] * len(QUERY))[: len(QUERY)]
    megahertz, uncorrected = _number(clock), _number(errors)
    return Sample(
        sm_clock=None if megahertz is None else megahertz * _MHZ,
        power=_number(power),
        temperature=_number(heat),
        throttle=int(throttle, 16) if throttle.lower().startswith("0x") else 0,
        ecc_errors=None if uncorrected is None else int(uncorrected),
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _known(samples: Sequence[Sample], value: Callable[[Sample], float | None]) -> list[float]:
    return [found for sample in samples if (found := value(sample)) is not None]


def _of(join: Callable[[list[float]], float], values: list[float]) -> float | None:
    return join(values) if values else None
