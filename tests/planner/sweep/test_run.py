"""A sweep's rows: in order, kept as they are found, found again, never lost."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.sweep.cases import Case
from planner.sweep.identity import NamedFile
from planner.sweep.local_workers import died
from planner.sweep.row import Outcome, Row
from planner.sweep.run import Workers, run_cases
from planner.sweep.store import ROWS, open_store
from simulator.errors import InputError
from tests.planner.sweep.sweeps import BATCHES, batch_of, batches, echo

HERE = Workers(jobs=1)


@pytest.fixture(name="cases", scope="module")
def _cases() -> tuple[Case, ...]:
    return batches()


def test_rows_are_in_the_order_of_the_cases_and_progress_is_told(cases: tuple[Case, ...]) -> None:
    told: list[tuple[int, int]] = []
    found = run_cases(
        cases, workers=HERE, forecast=echo, progress=lambda done, total: told.append((done, total))
    )
    assert [row.global_batch_size for row in found.rows] == BATCHES
    assert told == [(done, 6) for done in range(7)]


def test_a_second_run_computes_only_what_changed(cases: tuple[Case, ...], tmp_path: Path) -> None:
    computed: list[int] = []

    def noted(case: Case) -> tuple[int, Row]:
        computed.append(batch_of(case))
        return echo(case)

    run_cases(cases, workers=HERE, folder=tmp_path, forecast=noted)
    changed = (replace(cases[0], key="of another scenario"), *cases[1:])
    again = run_cases(changed, workers=HERE, folder=tmp_path, forecast=noted)
    assert (again.kept, computed) == (5, [*BATCHES, BATCHES[0]])


@given(cut=st.integers(0, 2000))
def test_a_sweep_that_was_cut_at_any_byte_goes_on(
    cases: tuple[Case, ...], tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    whole = run_cases(cases, workers=HERE, folder=folder, forecast=echo)
    data = (folder / ROWS).read_bytes()
    end = min(cut, len(data))
    (folder / ROWS).write_bytes(data[:end])
    again = run_cases(cases, workers=HERE, folder=folder, forecast=echo)
    assert again.rows == whole.rows
    assert again.kept == data[:end].count(b"\n")
    assert bool(again.notes) is (end > 0 and not data[:end].endswith(b"\n"))
    assert (folder / ROWS).read_bytes() == data


def test_an_error_of_one_case_loses_no_row_that_was_found(
    cases: tuple[Case, ...], tmp_path: Path
) -> None:
    def fails(case: Case) -> tuple[int, Row]:
        if batch_of(case) == 384:
            raise ZeroDivisionError
        return echo(case)

    with pytest.raises(ZeroDivisionError):
        run_cases(cases, workers=HERE, folder=tmp_path, forecast=fails)
    assert run_cases(cases, workers=HERE, folder=tmp_path, forecast=echo).kept == 2


def test_a_line_of_something_else_is_refused_with_its_number(
    cases: tuple[Case, ...], tmp_path: Path
) -> None:
    run_cases(cases[:1], workers=HERE, folder=tmp_path, forecast=echo)
    with (tmp_path / ROWS).open("a", encoding="utf-8") as file:
        file.write('{"key": 1}\n')
    with pytest.raises(InputError, match=r"rows\.jsonl, line 2: is not a row"):
        run_cases(cases, workers=HERE, folder=tmp_path, forecast=echo)


def test_two_sweeps_never_write_into_one_folder(tmp_path: Path) -> None:
    owner = f"can sweep into a folder .found process {os.getpid()}"
    with (
        open_store(tmp_path),
        pytest.raises(InputError, match=owner),
        open_store(tmp_path, sleep=lambda seconds: None),
    ):
        pass


def test_a_row_whose_workers_died_is_tried_again(cases: tuple[Case, ...], tmp_path: Path) -> None:
    def dies(case: Case) -> tuple[int, Row]:
        return died(case, 2) if batch_of(case) == 384 else echo(case)

    first = run_cases(cases, workers=HERE, folder=tmp_path, forecast=dies)
    again = run_cases(cases, workers=HERE, folder=tmp_path, forecast=echo)
    assert (first.rows[2].outcome, again.kept) == (Outcome.DIED, 5)
    assert again.rows[2].global_batch_size == 384


def test_a_changed_program_or_file_ends_the_sweep(cases: tuple[Case, ...]) -> None:
    other = replace(cases[0], code="of another version")
    with pytest.raises(InputError, match="has another version of traincast"):
        run_cases([other], workers=HERE)
    gone = replace(cases[0], files=(NamedFile(path="gone.csv", sha256="0"),))
    with pytest.raises(InputError, match=r"gone\.csv: is missing where"):
        run_cases([gone], workers=HERE)
