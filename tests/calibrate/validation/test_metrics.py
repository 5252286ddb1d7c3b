from dataclasses import asdict

import pytest

from calibrate.validation.groups import groups_of
from calibrate.validation.metrics import (
    feasibility_of,
    is_slow,
    rank_correlation,
    regret_of,
    statistics_of,
)
from calibrate.validation.records import (
    Choice,
    Feasibility,
    Pair,
    Quantity,
    RowResult,
    Status,
)


def pairs(*predicted: float, measured: float = 1.0) -> list[Pair]:
    return [Pair(measured=measured, predicted=each) for each in predicted]


def row(
    name: str, measured: float | None, predicted: float, *, problem: str = "p", fits: bool = True
) -> RowResult:
    return RowResult(
        id=name,
        status=Status.PREDICTED,
        quantity=Quantity.STEP_TIME,
        measured=measured,
        predicted=predicted,
        feasible=fits,
        ran=measured is not None,
        choice=Choice(problem=(problem,), layout=name),
    )


def test_statistics_of_five_rows() -> None:
    # Errors +10 %, -20 %, +30 %, -40 %, +50 %: sizes .1 .2 .3 .4 .5, the 90th percentile at
    # place 3.6 of 0..4.
    statistics = statistics_of(pairs(1.1, 0.8, 1.3, 0.6, 1.5))
    assert statistics is not None
    expected = {"count": 5, "median": 0.3, "mean": 0.3, "p90": 0.46, "worst": 0.5, "bias": 0.1}
    assert asdict(statistics) == pytest.approx(expected)


def test_no_rows_have_no_statistics() -> None:
    assert statistics_of([]) is None


def test_the_worst_error_keeps_its_sign() -> None:
    statistics = statistics_of(pairs(1.1, 0.2))
    assert statistics is not None
    assert statistics.worst == pytest.approx(-0.8)


def test_a_row_is_slow_beyond_twice_its_prediction() -> None:
    assert [is_slow(pair) for pair in pairs(0.5, 0.49, 2.0)] == [False, True, False]


def test_rank_correlation_sees_only_the_order() -> None:
    measured = [1.0, 2.0, 3.0, 4.0]
    same = [Pair(measured=m, predicted=m**3) for m in measured]
    opposite = [Pair(measured=m, predicted=1 / m) for m in measured]
    assert rank_correlation(same) == pytest.approx(1.0)
    assert rank_correlation(opposite) == pytest.approx(-1.0)


def test_rank_correlation_needs_three_rows_that_differ() -> None:
    assert rank_correlation(pairs(1.0, 2.0)) is None
    assert rank_correlation(pairs(1.0, 2.0, 3.0)) is None


def test_regret_is_the_time_of_the_chosen_layout_over_the_best() -> None:
    # The forecast prefers a (12 s); the best is b (10 s): 20 %.
    rows = [row("a", 12.0, 8.0), row("b", 10.0, 9.0), row("c", 20.0, 30.0)]
    regret = regret_of(rows)
    assert regret is not None
    assert asdict(regret) == pytest.approx(
        {
            "problems": 1,
            "top1_mean": 0.2,
            "top1_worst": 0.2,
            "top5_mean": 0.0,
            "top5_worst": 0.0,
            "calm": 1,
            "top1_median": 0.2,
            "top5_median": 0.0,
            "rank_correlation": 0.5,
        }
    )


def test_problems_that_mostly_ran_twice_too_slow_have_no_part_in_the_median() -> None:
    calm = [row("a", 12.0, 8.0), row("b", 10.0, 9.0), row("c", 70.0, 30.0)]
    broken = [
        row("a", 30.0, 8.0, problem="q"),
        row("b", 10.0, 9.0, problem="q"),
        row("c", 70.0, 30.0, problem="q"),
    ]
    regret = regret_of([*calm, *broken])
    assert regret is not None
    assert (regret.problems, regret.calm) == (2, 1)
    assert regret.top1_median == pytest.approx(0.2)
    assert regret.top1_mean == pytest.approx((0.2 + 2.0) / 2)


def test_without_a_calm_problem_there_is_no_median() -> None:
    regret = regret_of([row("a", 30.0, 8.0), row("b", 40.0, 9.0), row("c", 20.0, 30.0)])
    assert regret is not None
    assert (regret.calm, regret.top1_median, regret.top5_median) == (0, None, None)


def test_a_layout_that_does_not_fit_is_chosen_last() -> None:
    rows = [row("a", 12.0, 8.0, fits=False), row("b", 10.0, 9.0), row("c", 20.0, 30.0)]
    regret = regret_of(rows)
    assert regret is not None
    assert regret.top1_mean == 0.0


def test_problems_of_fewer_than_three_layouts_have_no_regret() -> None:
    rows = [row("a", 1.0, 1.0), row("b", 2.0, 1.0), row("c", 2.0, 1.0, problem="q")]
    assert regret_of(rows) is None


def test_repeated_measurements_of_a_layout_count_as_their_median() -> None:
    repeats = [row("a", seconds, 1.0) for seconds in (10.0, 12.0, 90.0)]
    regret = regret_of([*repeats, row("b", 10.0, 2.0), row("c", 20.0, 3.0)])
    assert regret is not None
    assert regret.top1_mean == pytest.approx(0.2)


def test_feasibility_counts_both_kinds_of_mistake() -> None:
    rows = [
        row("a", 1.0, 1.0),
        row("b", 1.0, 1.0, fits=False),
        row("c", None, 1.0),
        row("d", None, 1.0, fits=False),
        row("e", None, 1.0, fits=False),
    ]
    assert feasibility_of(rows) == Feasibility(
        ran_fits=1, ran_does_not_fit=1, failed_fits=1, failed_does_not_fit=2
    )


def test_slow_rows_are_counted_and_left_out_of_the_second_statistics() -> None:
    (group,) = groups_of([row("a", 1.0, 1.1), row("b", 3.0, 1.0)])
    assert group.slow == 1
    assert group.statistics is not None
    assert group.without_slow is not None
    assert (group.statistics.count, group.without_slow.count) == (2, 1)
    assert group.without_slow.median == pytest.approx(0.1)
