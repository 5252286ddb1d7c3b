"""All that a report of a calibration says, as plain data: no tables, no drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrate.check import Check, Checked, check_records
from calibrate.clocks import ClockNotes, clock_notes
from calibrate.points import CollectivePoint, GroupKind
from calibrate.rates import Rate, rate_of
from calibrate.records import Header, Record, Status
from calibrate.straggle import Stragglers, find_stragglers
from simulator.hardware.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """A measured point as a rate, beside what the profile forecasts."""

    checked: Checked
    rate: Rate
    fitted: float | None
    """In the unit of `rate`; None where there is no forecast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRate:
    """What one pair of ranks reached with its largest message."""

    first: int
    second: int
    bandwidth: float
    """Bytes/s, one way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A folder of measurements with the profile that was fitted to it, or is compared with it."""

    headers: tuple[Header, ...]
    profile: Profile
    base: Profile | None
    """The shipped profile that it is compared with."""
    check: Check
    base_check: Check | None
    rated: tuple[Rated, ...]
    pairs: tuple[PairRate, ...]
    stragglers: Stragglers
    clocks: ClockNotes | None
    notes: tuple[str, ...] = ()
    """What reading the folder had to say."""

    @property
    def counts(self) -> Mapping[str, Mapping[Status, int]]:
        """Records of each family by what became of them."""
        found: dict[str, Counter[Status]] = {}
        for point in self.check.points:
            found.setdefault(point.family, Counter())[point.record.status] += 1
        return found

    @property
    def not_counted(self) -> tuple[Checked, ...]:
        """Points that were measured or tried and do not count."""
        return tuple(p for p in self.check.points if p.record.status is not Status.OK)


def summarise(
    headers: Sequence[Header],
    records: Iterable[Record],
    profile: Profile,
    base: Profile | None = None,
    *,
    folder: Path | None = None,
    notes: Sequence[str] = (),
) -> Summary:
    """Return what a report says of `records` with `profile`, and with `base` beside it.

    Models that records name lie in `folder`.
    """
    kept = list(records)
    check = check_records(kept, profile, folder)
    return Summary(
        headers=tuple(headers),
        profile=profile,
        base=base,
        check=check,
        base_check=check_records(kept, base, folder) if base else None,
        rated=_rated(check, profile),
        pairs=pair_rates(kept),
        stragglers=find_stragglers(kept),
        clocks=clock_notes(kept),
        notes=tuple(notes),
    )


def pair_rates(records: Iterable[Record]) -> tuple[PairRate, ...]:
    """Return the bandwidth of each pair of ranks that was measured, by its largest message."""
    largest: dict[tuple[int, int], tuple[float, float]] = {}
    for record in records:
        point = record.point
        if not isinstance(point, CollectivePoint) or point.group is not GroupKind.PAIR:
            continue
        if record.status is not Status.OK or record.seconds is None:
            continue
        if point.first is None or point.second is None:
            continue
        found = (point.bytes, point.bytes / record.seconds)
        pair = (point.first, point.second)
        largest[pair] = max(found, largest.get(pair, found))
    return tuple(
        PairRate(first=first, second=second, bandwidth=bandwidth)
        for (first, second), (_, bandwidth) in sorted(largest.items())
    )


def _rated(check: Check, profile: Profile) -> tuple[Rated, ...]:
    found = []
    for checked in check.points:
        if checked.measured is None or checked.record.status is not Status.OK:
            continue
        point = checked.record.point
        rate = rate_of(point, checked.measured, profile)
        if rate is None:
            continue
        fitted = rate_of(point, checked.predicted, profile) if checked.predicted else None
        found.append(Rated(checked=checked, rate=rate, fitted=fitted.value if fitted else None))
    return tuple(found)
