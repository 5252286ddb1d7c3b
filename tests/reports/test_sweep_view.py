"""Sweeps and comparisons as tables, as frames and as a curve."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pytest
from rich.console import Console

from planner.sweep.cases import cases_of
from planner.sweep.comparison import compare_rows
from planner.sweep.row import Outcome, Row
from planner.sweep.run import Swept
from planner.sweep.sweep_file import Sweep
from reports.comparison_view import print_comparison
from reports.sweep_record import comparison_record, sweep_record, sweep_rows
from reports.sweep_view import print_sweep
from tests.planner.sweep.sweeps import sweep

OVER: dict[str, Sequence[Any]] = {"cluster.nodes": [1, 2], "job.precision": ["bf16", "fp8"]}


def row(step: float, nodes: int) -> Row:
    """Return a row of so many seconds a step, with half of them and twice as many as its ends."""
    return Row(
        outcome=Outcome.OK,
        model="m",
        layout="tp1",
        axes={"tp": 1},
        accelerators=8 * nodes,
        global_batch_size=8,
        seq_length=100,
        step_time_s=step,
        low_s=step / 2,
        high_s=step * 2,
        tokens_per_s=800 / step,
        mfu=0.5,
        peak_memory_bytes=2.0**30,
        days=3 * step,
        cost=1000 * step,
        currency="EUR",
    )


@pytest.fixture(name="asked", scope="module")
def _asked() -> Sweep:
    return sweep(OVER)


@pytest.fixture(name="swept", scope="module")
def _swept(asked: Sweep) -> Swept:
    refused = Row(outcome=Outcome.REFUSED, reason="must not be", accelerators=16)
    rows = (row(8.0, 1), row(4.0, 1), row(5.0, 2), refused)
    return Swept(cases=cases_of(asked), rows=rows)


def shown(print_it: object, record: object, width: int = 120) -> str:
    """Return what a function prints of a record."""
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    print_it(console, record)  # type: ignore[operator]
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_sweep_is_a_line_a_combination_and_the_reasons(swept: Swept) -> None:
    text = shown(print_sweep, sweep_record(swept, "Nodes"))
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines[:2] == ["Nodes", "4 combinations, 3 of them can run"]
    assert lines[3].split()[:6] == ["#", "nodes", "precision", "GPUs", "layout", "step"]
    first = "1  1  bf16  8  tp1  8.000  4.00-16.00  100  50.0  %  1.00  24.00  8,000"
    assert lines[4].split() == first.split()
    assert lines[7].split() == ["4", "2", "fp8", "refused"]
    assert lines[-1] == "#4: must not be"


def test_a_narrow_terminal_keeps_keys_times_and_outcomes(swept: Swept) -> None:
    text = shown(print_sweep, sweep_record(swept, "Nodes"), width=80)
    assert "left out at 80 characters: GPUs" in text
    assert "refused" in text


def test_a_flat_row_has_keys_forecast_and_layout(swept: Swept) -> None:
    rows = sweep_rows(swept)
    assert {len(each) for each in rows} == {len(rows[0])}
    first, last = rows[0], rows[3]
    assert (first["cluster.nodes"], first["tp"], first["step_time_s"]) == (1, 1, 8.0)
    assert (last["job.precision"], last["tp"], last["outcome"]) == ("fp8", None, "refused")


def test_a_comparison_stands_side_by_side(swept: Swept) -> None:
    pair = Swept(cases=(swept.cases[0], swept.cases[2]), rows=(swept.rows[0], swept.rows[2]))
    renumbered = compare_rows(pair)
    text = shown(print_comparison, comparison_record(renumbered))
    lines = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    assert lines["step, s"] == ["step,", "s", "8.000", "5.000", "-3.000", "x", "0.625"]
    assert lines["cost"] == ["cost", "8,000", "5,000", "-3,000", "x", "0.625"]
    assert lines["cluster.nodes"] == ["cluster.nodes", "1", "2"]
