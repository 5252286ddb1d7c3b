import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrate.validation import Status, render, to_json, validate_rows
from simulator.errors import InputError
from tests.calibrate.validation.tables import MIXTURE, STEP, step_rows, write_table
from tests.calibrate.validation.test_kernels_and_collectives import ATTENTION, COLLECTIVE, GEMM

ROW_KEYS = [
    "id",
    "status",
    "reason",
    "quantity",
    "unit",
    "measured",
    "predicted",
    "signed_error",
    "low",
    "high",
    "peak_memory_bytes",
    "measured_peak_memory_bytes",
    "feasible",
    "assumed",
    "labels",
    "source",
]
CELLS = st.one_of(
    st.sampled_from(
        ["", "nan", "-1", "0", "1e400", "1e300", "inf", "2.5", "3", "64", "True", "none", "fp8"]
    ),
    st.integers(-5, 10**20).map(str),
    st.text(max_size=12),
)


def test_json_has_the_documented_keys_and_finite_numbers(tmp_path: Path) -> None:
    rows = step_rows({}, {"id": "b", "status": "oom"}, {"id": "c", "layers": ""})
    document = to_json(validate_rows(write_table(tmp_path / "s.csv", rows)))
    json.dumps(document, allow_nan=False)
    assert list(document) == ["rows", "groups", "provenance"]
    assert [list(row) for row in document["rows"]] == [ROW_KEYS] * 3
    assert [row["status"] for row in document["rows"]] == ["predicted", "predicted", "skipped"]
    assert document["rows"][0]["unit"] == "s"
    first = document["groups"][0]
    assert (first["rows"], first["predicted"], first["skipped"], first["compared"]) == (3, 2, 1, 1)
    assert first["statistics"]["count"] == 1


def test_provenance_names_versions_profiles_and_stacks(tmp_path: Path) -> None:
    provenance = validate_rows(write_table(tmp_path / "s.csv", step_rows({}))).provenance
    assert provenance["kind"] == "steps"
    assert provenance["stacks"] == ["megatron-deepspeed"]
    assert provenance["profiles"].keys() == {"dgx-a100-80gb"}  # type: ignore[attr-defined]


def test_rows_keep_their_order_and_get_numbers_where_they_have_no_id(tmp_path: Path) -> None:
    rows = step_rows({"id": "z"}, {"id": ""}, {"id": "a", "pp": "2", "dp": "4"})
    results = validate_rows(write_table(tmp_path / "s.csv", rows)).rows
    assert [row.id for row in results] == ["z", "1", "a"]


def test_a_row_cut_short_is_skipped_and_the_others_are_not(tmp_path: Path) -> None:
    path = write_table(tmp_path / "s.csv", step_rows({}))
    path.write_text(path.read_text() + "b,a table\n")
    first, second = validate_rows(path).rows
    assert first.status is Status.PREDICTED
    assert second.reason == f"the row has 2 cells, the header {len(STEP)}"


def test_a_table_with_only_a_header_has_no_rows_and_no_groups(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(",".join(STEP) + "\n")
    validation = validate_rows(path)
    assert (validation.rows, validation.groups) == ((), ())
    assert "0 of 0 rows" in render(validation)


def test_the_table_names_groups_and_reasons(tmp_path: Path) -> None:
    rows = step_rows({}, {"id": "b", "layers": ""})
    text = render(validate_rows(write_table(tmp_path / "s.csv", rows)))
    assert "megatron-deepspeed, dgx-a100-80gb, bf16" in text
    assert "1 of 2 rows were not predicted" in text
    assert "layers: not given" in text


def test_an_unknown_profile_or_stack_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path / "s.csv", step_rows({}))
    for override in ({"profile": "abacus"}, {"stack": "abacus"}):
        with pytest.raises(InputError):
            validate_rows(path, **override)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("base", [STEP, MIXTURE, COLLECTIVE, GEMM, ATTENTION])
def test_no_cell_raises_anything(base: dict[str, str], tmp_path: Path, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    changes = [
        data.draw(st.dictionaries(st.sampled_from(sorted(base)), CELLS, max_size=5))
        for _ in range(count)
    ]
    path = write_table(tmp_path / "h100_sxm_x.csv", [{**base, **change} for change in changes])
    try:
        validation = validate_rows(path)
    except InputError:
        return
    json.dumps(to_json(validation), allow_nan=False)
    for row in validation.rows:
        assert (row.status is Status.SKIPPED) == bool(row.reason)
        assert row.predicted is None or math.isfinite(row.predicted)
