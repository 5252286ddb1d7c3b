"""What results are called, and which of them belong to one scenario."""

from __future__ import annotations

from collections.abc import Sequence

from reports.result_files import ExplainFile, ResultFile


def title_of(file: ResultFile) -> str:
    """Return what a result is called: as it says itself, or as its file."""
    result = file.result
    if isinstance(result, ExplainFile):
        return result.plan.title
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
