"""What the device's management library said while points ran: clocks, power, heat, throttling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from calibrate.records import Clocks, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockNotes:
    """Clocks of all records that have them; None is not known."""

    records: int
    """Records with clocks."""
    clock: float | None
    """Hz, median over the records."""
    slowest_clock: float | None
    """Hz, of the record with the lowest."""
    power: float | None
    """Watts, of the record with the highest mean."""
    temperature: float | None
    """Degrees Celsius, highest."""
    throttled: Mapping[str, int] = field(default_factory=dict)
    """Reason -> records during which it was set."""
    ecc_errors: int | None
    """Uncorrected, the highest count."""


def clock_notes(records: Iterable[Record]) -> ClockNotes | None:
    """Return what the clocks of some records say together; None where none has any."""
    seen = [record.clocks for record in records if record.clocks is not None]
    if not seen:
        return None
    clocks = _known(seen, lambda each: each.sm_clock)
    powers = _known(seen, lambda each: each.power)
    heats = _known(seen, lambda each: each.temperature)
    errors = _known(seen, lambda each: each.ecc_errors)
    return ClockNotes(
        records=len(seen),
        clock=median(clocks) if clocks else None,
        slowest_clock=min(clocks, default=None),
        power=max(powers, default=None),
        temperature=max(heats, default=None),
        throttled=dict(Counter(reason for each in seen for reason in each.throttle)),
        ecc_errors=int(max(errors)) if errors else None,
    )


def _known(seen: Iterable[Clocks], of: Callable[[Clocks], float | None]) -> list[float]:
    values = (of(each) for each in seen)
    return [value for value in values if value is not None]
