"""How good choices among layouts that others measured are, and verdicts of memory.

The rows are judged as they stand: none of them fits a constant (those that do are left out).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pytest

from calibrate.validation import RowResult, validate_rows
from calibrate.validation.metrics import choices_of, feasibility_of, is_calm, regret
from tests.calibrate.validation.tables import write_table
from tests.data import data_folder, needs_data

LARGEST = 64
"""GPUs; of nanotron's larger runs most took more than twice what any model explains."""
TABLES = ("nanotron", "vtrain", "bigscience")


@pytest.fixture(scope="module")
def grids(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sequence[RowResult]]:
    """Return the rows of each table with their forecasts."""
    folder = tmp_path_factory.mktemp("grids")
    return {name: validate_rows(_grid(name, folder)).rows for name in TABLES}


def _grid(name: str, folder: Path) -> Path:
    path = data_folder() / "steps" / f"{name}.csv"
    if name != "nanotron":
        return path
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["gpus"]) <= LARGEST]
    return write_table(folder / path.name, rows)


@needs_data
def test_the_first_choice_among_measured_layouts_is_near_the_best(
    grids: dict[str, Sequence[RowResult]],
) -> None:
    problems = [choice for rows in grids.values() for choice in choices_of(rows)]
    calm = [choice for choice in problems if is_calm(choice)]
    first = [regret(choice, 1) for choice in calm]
    of_five = [regret(choice, 5) for choice in calm]
    assert len(calm) >= 8
    assert (median(first) <= 0.03, median(of_five) <= 0.01) == (True, True), (first, of_five)


@needs_data
def test_runs_that_crashed_are_mostly_those_forecast_not_to_fit(
    grids: dict[str, Sequence[RowResult]],
) -> None:
    seen = feasibility_of(grids["nanotron"])
    assert seen is not None
    told = seen.failed_does_not_fit
    precision = told / (told + seen.ran_does_not_fit)
    recall = told / (told + seen.failed_fits)
    assert (precision >= 0.95, recall >= 0.85) == (True, True), (precision, recall)
