"""What a calibration report says, as plain values: its result file, and what its page is made of.

Keys carry their unit: `_s` seconds, `_bytes` bytes; rates are bytes/s or FLOP/s, as `unit` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from calibrate.check import Check, Checked
from calibrate.point_words import group_words
from calibrate.points import AttentionPoint, CollectivePoint, GemmPoint, Point
from calibrate.rates import RateUnit
from calibrate.straggle import Stragglers
from calibrate.summary import PairRate, Rated, Summary
from reports.calibration_sections import report_sections
from reports.result_files import ResultFile
from reports.result_files.calibration import CalibrationFile
from reports.result_kinds import ResultKind, result_of
from reports.section import Section
from simulator.files import parse_record


def calibration_record(summary: Summary) -> dict[str, Any]:
    """Return a report of a calibration as plain values; all numbers are finite."""
    record = {
        "title": f"Calibration of {summary.profile.name}",
        "profile": summary.profile.name,
        "profile_sha256": summary.profile.sha256,
        "base": None if summary.base is None else summary.base.name,
        "sections": [_section(section) for section in report_sections(summary)],
        "rates": _rates(summary.rated),
        "checked": _checked(summary.check, summary.base_check),
        "pairs": _pairs(summary.pairs),
        "stragglers": _stragglers(summary.stragglers),
        "warnings": list(summary.notes),
    }
    return result_of(ResultKind.CALIBRATION, record)


def calibration_file(summary: Summary, folder: Path) -> ResultFile:
    """Return a calibration as reports read it from a result file; it comes from a folder."""
    record = parse_record(CalibrationFile, calibration_record(summary), str(folder))
    return ResultFile(path=folder, result=record)


def _section(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "text": list(section.text),
        "columns": [
            {"title": each.title, "justify": each.justify, "cells": list(each.cells)}
            for each in section.columns
        ],
    }


def _rates(rated: Sequence[Rated]) -> dict[str, list[Any]]:
    points = [each.checked.record.point for each in rated]
    return {
        "family": [each.checked.family for each in rated],
        "group": [_group(point) for point in points],
        "x": [_work(each) for each in rated],
        "unit": [each.rate.unit.value for each in rated],
        "measured": [each.rate.value for each in rated],
        "forecast": [each.fitted for each in rated],
        "nominal": [each.rate.nominal for each in rated],
    }


def _group(point: Point) -> str:
    """Return which curve of its family a point belongs to."""
    return group_words(point) if isinstance(point, CollectivePoint) else ""


def _work(rated: Rated) -> float:
    """Return what a point's rate is over: bytes of what moves bytes, FLOP of what computes."""
    point = rated.checked.record.point
    if rated.rate.unit is RateUnit.FLOPS:
        seconds = rated.checked.measured
        assert isinstance(point, GemmPoint | AttentionPoint), point
        assert seconds is not None
        return rated.rate.value * seconds
    size = getattr(point, "bytes", None)
    assert size is not None, point
    return float(size)


def _checked(check: Check, base: Check | None) -> dict[str, list[Any]]:
    """Return every record, also those that do not count, which say why."""
    points = check.points
    shipped: Sequence[Checked | None] = base.points if base else [None] * len(points)
    return {
        "family": [point.family for point in points],
        "words": [point.words for point in points],
        "status": [point.record.status.value for point in points],
        "reason": [point.reason for point in points],
        "measured_s": [point.measured for point in points],
        "predicted_s": [point.predicted for point in points],
        "shipped_s": [other and other.predicted for other in shipped],
        "used_by_the_fit": [point.used for point in points],
    }


def _pairs(pairs: Sequence[PairRate]) -> dict[str, list[Any]]:
    return {
        "first": [pair.first for pair in pairs],
        "second": [pair.second for pair in pairs],
        "bytes_per_second": [pair.bandwidth for pair in pairs],
    }


def _stragglers(found: Stragglers) -> dict[str, list[dict[str, Any]]]:
    return {
        "ranks": [{**asdict(slow), "part": slow.part.value} for slow in found.ranks],
        "pairs": [
            {"first": slow.first, "second": slow.second, "factor": slow.factor}
            for slow in found.pairs
        ],
    }
