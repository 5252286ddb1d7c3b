"""A check as plain values: what `calibrate check --json` writes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from calibrate.check import Check, Checked, FamilyCheck
from calibrate.used_points import digest_of
from calibrate.validation.records import Statistics


def check_table(check: Check, broken: list[str]) -> dict[str, Any]:
    """Return a check and the limits that it breaks; seconds, bytes and fractions of 1."""
    return {
        "profile": check.profile,
        "profile_sha256": check.sha256,
        "knows_its_fit": check.knows_its_fit,
        "families": [_family(each) for each in check.families],
        "total": _family(check.total),
        "points": [_point(each) for each in check.points],
        "broken_limits": broken,
    }


def _family(family: FamilyCheck) -> dict[str, Any]:
    return {
        "family": family.family,
        "records": family.records,
        "compared": family.statistics.count if family.statistics else 0,
        "used_by_the_fit": family.used,
        "skipped": family.skipped,
        "noise": family.noise,
        "errors": _statistics(family.statistics),
        "held_out_errors": _statistics(family.held_out),
        "memory_errors": _statistics(family.memory),
    }


def _point(point: Checked) -> dict[str, Any]:
    memory = point.memory
    return {
        "point": point.record.point.model_dump(mode="json"),
        "digest": digest_of(point.record.point),
        "family": point.family,
        "words": point.words,
        "status": str(point.record.status),
        "reason": point.reason,
        "used_by_the_fit": point.used,
        "measured_s": point.measured,
        "predicted_s": point.predicted,
        "signed_error": point.pair.signed_error if point.pair else None,
        "noise": point.record.spread,
        "measured_memory_bytes": memory.measured if memory else None,
        "predicted_memory_bytes": memory.predicted if memory else None,
        "origin": point.record.origin,
    }


def _statistics(found: Statistics | None) -> dict[str, Any] | None:
    return asdict(found) if found else None
