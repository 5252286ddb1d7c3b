"""From samples to calibration lines: one header a machine, one record a point."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from calibrate.limits import Limits
from calibrate.points import Point, key_of
from calibrate.records import LEAST_SECONDS, MOST_SECONDS, Fingerprint, Header, Record, Status

_QUARTERS = 4
_FEWEST = 3
"""Repeats from which their scatter is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measurement of a point, as a file says it."""

    point: Point
    seconds: float | None
    line: int
    """In the file, from 1; 0 where lines mean nothing."""
    status: Status = Status.OK
    reason: str = ""
    algorithm: str | None = None
    protocol: str | None = None


def header(fingerprint: Fingerprint, name: str) -> Header:
    """Return the header of an imported file's lines."""
    return Header(
        traincast=_version(),
        made_by=f"calibrate import {name}",
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        fingerprint=fingerprint,
    )


def records_of(measured: Iterable[Measured], name: str) -> tuple[Record, ...]:
    """Return one record a point: the median of its repeats, those that are rejected apart."""
    return tuple(_record(same, name) for same in _alike(measured))


def fastest(measured: Iterable[Measured], name: str) -> tuple[Record, ...]:
    """Return one record a point: the fastest of calls that also waited for others."""
    found = []
    for same in _alike(measured):
        times = [each.seconds for each in same if each.seconds is not None]
        best = min(times, default=None)
        record = _record(same, name)
        changes = {"seconds": best, "status": same[0].status, "reason": same[0].reason}
        found.append(record.model_copy(update=changes))
    return tuple(found)


def counts(records: Sequence[Record]) -> dict[Status, int]:
    """Return how many records there are of each status that occurs."""
    found = [status for status in Status if any(record.status is status for record in records)]
    return {status: sum(record.status is status for record in records) for status in found}


def _alike(measured: Iterable[Measured]) -> list[list[Measured]]:
    """Return measurements of the same point together, in order of their first."""
    found: dict[str, list[Measured]] = {}
    for each in measured:
        found.setdefault(key_of(each.point), []).append(each)
    return list(found.values())


def _record(same: Sequence[Measured], name: str) -> Record:
    good = [each for each in same if each.status is Status.OK]
    used = good or same
    times = [each.seconds for each in used if each.seconds is not None]
    first = used[0]
    spread = _spread(times)
    noisy = bool(good) and len(times) >= _FEWEST and (spread or 0) > Limits().spread
    reason = first.reason
    if noisy:
        reason = f"{len(times)} repeats scatter by {spread:.0%} of their median"
    typical = statistics.median(times) if times else None
    status = Status.NOISY if noisy else first.status
    if typical is not None and not LEAST_SECONDS <= typical <= MOST_SECONDS:
        reason = f"{typical:.3g} s; a time is {LEAST_SECONDS:g} to {MOST_SECONDS:g} s"
        status, typical = Status.REJECTED, None
    return Record(
        point=first.point,
        status=status,
        seconds=typical,
        spread=spread,
        samples=len(times),
        outliers=len(same) - len(used),
        algorithm=first.algorithm,
        protocol=first.protocol,
        reason=reason,
        origin=f"{name}:{first.line}" if first.line else name,
    )


def _spread(times: Sequence[float]) -> float | None:
    """Return the distance between the quartiles over the median; None for a single time."""
    if len(times) <= 1:
        return None
    quarters = statistics.quantiles(times, n=_QUARTERS, method="inclusive")
    return (quarters[-1] - quarters[0]) / quarters[1]


def _version() -> str:
    try:
        return version("traincast")
    except PackageNotFoundError:
        return "not installed"
