"""What results are called, and which of them belong to one scenario."""

from __future__ import annotations

from collections.abc import Sequence

from reports.result_files import CalibrationFile, ExplainFile, ResultFile
from reports.words import Words


def title_of(file: ResultFile, words: Words) -> str:
    """Return what a result is called by itself: as it says, or as its file."""
    if isinstance(file.result, CalibrationFile):
        return words("Calibration of {profile}", profile=file.result.profile)
    return subject_of(file)


def subject_of(file: ResultFile) -> str:
    """Return what a result is of, where its kind stands before it."""
    result = file.result
    if isinstance(result, ExplainFile):
        return result.plan.title
    if isinstance(result, CalibrationFile):
        return result.profile
    return str(getattr(result, "title", "")) or file.path.stem


def scenario_of(file: ResultFile) -> str:
    """Return the scenario that a result is a forecast of; empty where it is of none, or several."""
    return str(getattr(getattr(file.result, "plan", file.result), "scenario", ""))


def by_scenario(files: Sequence[ResultFile]) -> list[list[ResultFile]]:
    """Return the results that one summary can speak of together.

    Those of one scenario are one story, and so are they with what is of none (a validation, a
    calibration); where there are several scenarios each has its own.
    """
    if len({scenario_of(file) for file in files} - {""}) <= 1:
        return [list(files)]
    groups: dict[str, list[ResultFile]] = {}
    for file in files:
        groups.setdefault(scenario_of(file) or str(file.path), []).append(file)
    return list(groups.values())
