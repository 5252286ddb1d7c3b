"""Figures that set measurements beside forecasts."""

from __future__ import annotations

from typing import Any

from reports.charts import Part
from reports.report_figures import measured
from reports.result_files.calibration import CalibrationFile, PairColumns, RatedColumns
from reports.result_files.trace_comparison import ClassFacts, TraceComparisonFile
from reports.result_files.validation import ValidatedRow, ValidationFile
from reports.words import english
from tests.reports.small_figures import only, partly

_PAIRS = PairColumns(first=(0, 1), second=(1, 0), bytes_per_second=(4e10, 2e10))
_RATES = RatedColumns(
    family=("all reduce", "all reduce", "sendrecv", "gemm"),
    group=("8 ranks", "8 ranks", "ranks 0 and 1", ""),
    x=(4e6, 1e6, 1e6, 2e12),
    unit=("B/s", "B/s", "B/s", "FLOP/s"),
    measured=(4e9, 1e9, 4e10, 5e14),
    forecast=(5e9, None, 4e10, 6e14),
    nominal=(None, None, None, 1e15),
)


def test_forecasts_stand_against_measurements_and_errors_are_counted() -> None:
    rows = (
        ValidatedRow(
            id="a",
            status="ok",
            quantity="step_time",
            measured=10.0,
            predicted=9.0,
            signed_error=-0.1,
        ),
        ValidatedRow(
            id="b", status="ok", quantity="step_time", measured=1.0, predicted=3.0, signed_error=2.0
        ),
        ValidatedRow(id="c", status="skipped", quantity="step_time"),
    )
    found = partly(ValidationFile, rows=rows)
    scatter, errors = list[Any](measured.validation(found, english))
    (series,) = scatter.series
    assert (series.x, series.y) == ((10.0, 1.0), (9.0, 3.0))
    # 20 bars of 5 %: -10 % begins bar 8, and what is beyond 50 % is in the last one.
    assert [place for place, count in enumerate(errors.counts) if count] == [8, 19]


def test_curves_are_sorted_by_size_and_pairs_of_ranks_are_left_to_their_map() -> None:
    found = partly(CalibrationFile, rates=_RATES, pairs=_PAIRS)
    reduce, gemm = list[Any](measured.curves(found, english))
    lines = [(each.label, each.x, each.y) for each in reduce.series]
    assert lines == [
        ("8 ranks, measured", (1e6, 4e6), (1.0, 4.0)),
        ("8 ranks, forecast", (4e6,), (5.0,)),
    ]
    assert [each.label for each in gemm.series] == ["measured", "forecast"]
    assert gemm.y_label == "TFLOP/s"


def test_a_pair_that_was_not_measured_is_no_number() -> None:
    drawn = only(measured.pairs(partly(CalibrationFile, pairs=_PAIRS), english))
    assert drawn.values == ((None, 40.0), (20.0, None))


def test_a_class_that_only_one_side_has_is_nothing_on_the_other() -> None:
    classes = (
        ClassFacts(name="gemm", simulated_s=2.0, measured_s=3.0),
        ClassFacts(name="host_wait", simulated_s=None, measured_s=1.0),
    )
    drawn = only(measured.trace(partly(TraceComparisonFile, classes=classes), english))
    assert drawn.parts == (
        Part(label="matrix products", tone=0, values=(2.0, 3.0)),
        Part(label="host wait", tone=13, values=(0.0, 1.0)),
    )
