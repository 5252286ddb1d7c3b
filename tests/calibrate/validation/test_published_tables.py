"""Every published table runs through; the numbers themselves are not asserted here."""

import json
from pathlib import Path

import pytest

from calibrate.validation import Status, to_json, validate_rows
from simulator.errors import InputError
from tests.data import data_folder, needs_data

TABLES = sorted(
    path.relative_to(data_folder())
    for folder in ("steps", "collectives", "kernels")
    for path in (data_folder() / folder).rglob("*.csv")
)
OF_NO_KNOWN_KIND = {"memop_neusight.csv", "index.csv"}


@needs_data
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_a_published_table_runs_through_and_its_counts_add_up(table: Path) -> None:
    path = data_folder() / table
    if path.name in OF_NO_KNOWN_KIND:
        with pytest.raises(InputError):
            validate_rows(path)
        return
    validation = validate_rows(path)
    json.dumps(to_json(validation), allow_nan=False)
    first = validation.groups[0]
    skipped = [row for row in validation.rows if row.status is Status.SKIPPED]
    assert (first.rows, first.skipped) == (len(validation.rows), len(skipped))
    assert all(row.reason for row in skipped)
    by_label = [group for group in validation.groups if "stack" in group.by or "op" in group.by]
    labelled = [group for group in by_label if group.quantity is first.quantity]
    assert not labelled or sum(group.rows for group in labelled) == first.rows - first.skipped


@needs_data
def test_each_step_row_is_predicted_or_skipped_once() -> None:
    path = data_folder() / "steps" / "vtrain.csv"
    rows = validate_rows(path).rows
    assert len({row.id for row in rows}) == len(rows)
