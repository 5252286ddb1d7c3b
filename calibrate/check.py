"""The check of a profile: every measured record of a folder beside its forecast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from calibrate.point_words import family_of, words_of
from calibrate.predict import Forecast, UnpredictedError, measured_seconds, predict
from calibrate.records import Record, Status
from calibrate.used_points import digest_of, used_points
from calibrate.validation.metrics import statistics_of
from calibrate.validation.records import Pair, Statistics
from simulator.hardware.profile import Profile

ALL = "all"
"""Name of the line over all families."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One record: what was measured, what is forecast, or why it is not."""

    record: Record
    family: str
    words: str
    used: bool
    """Whether the profile's fit has seen this point."""
    measured: float | None = None
    """Seconds."""
    predicted: float | None = None
    """Seconds."""
    reason: str = ""
    """Why there is no forecast, or why the measurement does not count."""
    memory: Pair | None = None
    """Of a step: bytes of the allocator's peak."""

    @property
    def pair(self) -> Pair | None:
        """Both times of a record that counts."""
        if self.measured is None or self.predicted is None or self.reason:
            return None
        return Pair(measured=self.measured, predicted=self.predicted)


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyCheck:
    """The errors of the records of one family."""

    family: str
    records: int
    used: int
    """Of the compared ones, those that the fit has seen."""
    skipped: int
    """Not compared; each says why."""
    noise: float | None
    """Median spread of the compared points: errors below it say nothing."""
    statistics: Statistics | None
    """Of all compared points."""
    held_out: Statistics | None
    """Of those that the fit has not seen; None too where the profile does not list what it saw."""
    memory: Statistics | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A folder of measurements beside the forecasts of a profile."""

    profile: str
    sha256: str
    knows_its_fit: bool
    """Whether the profile lists the points that fitted it."""
    points: tuple[Checked, ...]
    families: tuple[FamilyCheck, ...]
    """In order of first appearance."""
    total: FamilyCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorLimits:
    """What a check must keep to pass; None asks for nothing. Fractions of 1."""

    median: float | None = None
    worst: float | None = None


def check_records(records: Iterable[Record], profile: Profile, folder: Path | None = None) -> Check:
    """Return every record beside its forecast, and whether the profile's fit has seen it.

    Models that records name lie in `folder`.
    """
    used = used_points(profile)
    points = tuple(_checked(record, profile, used, folder) for record in records)
    families: dict[str, list[Checked]] = {}
    for point in points:
        families.setdefault(point.family, []).append(point)
    return Check(
        profile=profile.name,
        sha256=profile.sha256,
        knows_its_fit=bool(used),
        points=points,
        families=tuple(
            family_check(name, members, knows_its_fit=bool(used))
            for name, members in families.items()
        ),
        total=family_check(ALL, points, knows_its_fit=bool(used)),
    )


def family_check(name: str, points: Sequence[Checked], *, knows_its_fit: bool) -> FamilyCheck:
    """Return the errors of some checked records under one name."""
    compared = [point for point in points if point.pair is not None]
    unseen = [point for point in compared if not point.used] if knows_its_fit else []
    return FamilyCheck(
        family=name,
        records=len(points),
        used=sum(point.used for point in compared),
        skipped=len(points) - len(compared),
        noise=_median([point.record.spread for point in compared]),
        statistics=_statistics(compared),
        held_out=_statistics(unseen),
        memory=statistics_of([point.memory for point in compared if point.memory is not None]),
    )


def broken_limits(check: Check, limits: ErrorLimits) -> list[str]:
    """Return each limit that a check does not keep, in words; nothing compared keeps none.

    The limits hold for the points that the fit has not seen; for all where it has seen all, or
    where that is not known.
    """
    if limits.median is None and limits.worst is None:
        return []
    judged = check.total.held_out or check.total.statistics
    if judged is None:
        return ["no measurement could be compared with a forecast"]
    which = "points that the fit has not seen" if check.total.held_out else "points"
    found = (("median", judged.median, limits.median), ("worst", abs(judged.worst), limits.worst))
    return [
        f"{name} error {error:.1%} of {judged.count} {which} is above the limit of "
        f"{100 * limit:.4g}%"
        for name, error, limit in found
        if limit is not None and error > limit
    ]


def _checked(
    record: Record, profile: Profile, used: frozenset[str], folder: Path | None
) -> Checked:
    forecast, reason = _forecast(record, profile, folder)
    if record.status is not Status.OK:
        reason = ": ".join(filter(None, (str(record.status), record.reason)))
    measured = measured_seconds(record)
    if measured is None and not reason:
        reason = "no time was recorded"
    return Checked(
        record=record,
        family=family_of(record.point),
        words=words_of(record.point),
        used=digest_of(record.point) in used,
        measured=measured,
        predicted=forecast.seconds if forecast else None,
        reason=reason,
        memory=_memory(record, forecast),
    )


def _forecast(record: Record, profile: Profile, folder: Path | None) -> tuple[Forecast | None, str]:
    try:
        return predict(record, profile, folder), ""
    except UnpredictedError as error:
        return None, str(error)


def _memory(record: Record, forecast: Forecast | None) -> Pair | None:
    measured = record.values.get("peak_allocated")
    if not measured or forecast is None or forecast.allocated is None:
        return None
    return Pair(measured=measured, predicted=forecast.allocated)


def _statistics(points: Sequence[Checked]) -> Statistics | None:
    return statistics_of([point.pair for point in points if point.pair is not None])


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
