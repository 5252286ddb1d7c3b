"""What measurements beside forecasts say: validations, calibrations, real traces."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from reports.page.topics import Said, Topic
from reports.quantities import percent, seconds, signed_percent
from reports.report_figures.labels import named
from reports.result_files.calibration import CalibrationFile
from reports.result_files.trace_comparison import TraceComparisonFile
from reports.result_files.validation import GroupFacts, ValidationFile
from reports.validation_view import QUANTITIES
from reports.words import Words


def of_validation(found: ValidationFile, words: Words) -> Iterator[Said]:
    """Say how far forecasts are off the measured runs, for each quantity that was measured."""
    wholes = {group.quantity: group for group in reversed(found.groups) if not group.by}
    compared = [group for group in reversed(wholes.values()) if group.statistics is not None]
    if not compared:
        yield Topic.VALIDATED, words("No row could be compared.")
        return
    for group in compared:
        yield from _errors(group, words)
    for fitted in found.provenance.fitted_on_this_file:
        yield Topic.VALIDATED, words("Fitted on rows of this file: {what}.", what=fitted)


def _errors(group: GroupFacts, words: Words) -> Iterator[Said]:
    errors = group.statistics
    assert errors is not None, group.quantity
    yield (
        Topic.VALIDATED,
        words(
            "{quantity}: {compared} of {rows} measured runs were compared: median error {median}, "
            "90th percentile {p90}, worst {worst}.",
            quantity=named(QUANTITIES, group.quantity, words),
            compared=group.compared,
            rows=group.rows,
            median=percent(errors.median),
            p90=percent(errors.p90),
            worst=percent(abs(errors.worst)),
        ),
    )


def of_calibration(found: CalibrationFile, words: Words) -> Iterator[Said]:
    """Say what was measured, and how far the profile is off its points."""
    compared = [
        abs(forecast / took - 1)
        for took, forecast, status in zip(
            found.checked.measured_s, found.checked.predicted_s, found.checked.status, strict=True
        )
        if took and forecast is not None and status == "ok"
    ]
    if compared:
        yield (
            Topic.VALIDATED,
            words(
                "{profile}: measured points {count}, forecast with a median error of {median}.",
                profile=found.profile,
                count=len(compared),
                median=percent(median(compared)),
            ),
        )


def of_trace(found: TraceComparisonFile, words: Words) -> Iterator[Said]:
    """Say how far the forecast is off the measured step, and where."""
    off = found.simulated_step_s / found.measured_step_s - 1
    yield (
        Topic.VALIDATED,
        words(
            "A measured step takes {measured}, its forecast {simulated} ({off}).",
            measured=seconds(found.measured_step_s),
            simulated=seconds(found.simulated_step_s),
            off=signed_percent(off),
        ),
    )
    for sentence in found.sentences:
        yield Topic.WHY, words.sentence(sentence)
    for note in found.notes:
        yield Topic.ASSUMED, words.sentence(note)
