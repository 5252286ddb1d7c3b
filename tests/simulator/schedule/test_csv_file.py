"""Schedules in PyTorch's notation: what is read, what is refused and why, and the round trip."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from simulator.api import Forecaster
from simulator.errors import InputError
from simulator.parallel.layout import ParallelLayout, ScheduleName
from simulator.parallel.placement import PipelineShape, Placement
from simulator.schedule.action import Action, ActionKind
from simulator.schedule.csv_file import check_schedule, parse_schedule, to_csv
from simulator.schedule.registry import build_schedule, pipeline_shape
from tests.fakes import fake_profile, fake_stack, tiny_job, tiny_model
from tests.simulator.strategies import pipelines

TWO = PipelineShape(pp=2, vpp=1)
V = PipelineShape(pp=2, vpp=2, placement=Placement.V)
ONE_F_ONE_B = "0F0,0F1,,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n"
ZERO_BUBBLE = "0F0,0F1,,0I0,0W0,0I1,0W1\n,1F0,1I0,1F1,1I1,1W0,1W1\n"


def problems(
    text: str, shape: PipelineShape = TWO, micro_batches: int = 2
) -> list[tuple[str, str, str]]:
    with pytest.raises(InputError) as caught:
        check_schedule(text, shape, micro_batches, "s.csv")
    return [(p.key, p.found, p.rule) for p in caught.value.problems]


def test_cells_are_passes_and_empty_ones_bubbles() -> None:
    check_schedule(ONE_F_ONE_B, TWO, 2, "s.csv")
    assert parse_schedule(ONE_F_ONE_B, TWO) == build_schedule(ScheduleName.ONE_F_ONE_B, 2, 1, 2)


def test_input_and_weight_gradients_may_stand_apart() -> None:
    check_schedule(ZERO_BUBBLE, TWO, 2, "s.csv")
    kinds = "".join(action.kind for action in parse_schedule(ZERO_BUBBLE, TWO)[0])
    assert kinds == "FFIWIW"


def test_overlapped_passes_run_one_after_the_other() -> None:
    text = "0F0,0F1,,,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n"
    check_schedule(text, TWO, 2, "s.csv")
    assert parse_schedule(text, TWO)[1][1:3] == (
        Action(1, ActionKind.FORWARD, 1),
        Action(1, ActionKind.BACKWARD, 0),
    )


@given(pipelines())
def test_every_schedule_survives_being_written_and_read(
    pipeline: tuple[ScheduleName, int, int, int],
) -> None:
    name, pp, vpp, micro_batches = pipeline
    shape = pipeline_shape(name, pp, vpp)
    schedule = build_schedule(*pipeline)
    text = to_csv(schedule, shape)
    assert parse_schedule(text, shape) == schedule
    if shape.placement is not Placement.BIDIRECTIONAL:
        check_schedule(text, shape, micro_batches, "s.csv")


def test_every_wrong_cell_is_named_by_row_and_column() -> None:
    text = "0F0,zero,0SEND_F0,0B0\n1F0,7F0,0F1,1B0\n"
    assert problems(text) == [
        ("row 1, column 2", "zero", "must be a place, F, B, I or W, and a micro-batch"),
        (
            "row 1, column 3",
            "0SEND_F0",
            "communication is derived from the passes, and not read from the file",
        ),
        ("row 2, column 2", "7F0", "places are 0 to pp x vpp - 1 = 1"),
        ("row 2, column 3", "0F1", "with placement loop place 0 is on row 1"),
    ]


def test_a_file_of_another_placement_says_so() -> None:
    text = to_csv(build_schedule(ScheduleName.ZERO_BUBBLE_V, 2, 2, 4), V)
    with pytest.raises(InputError) as caught:
        check_schedule(text, PipelineShape(pp=2, vpp=2), 4, "s.csv")
    assert caught.value.problems[0].fix == 'the pass on its row, or placement = "v"'


def test_each_row_is_one_rank() -> None:
    assert problems(ONE_F_ONE_B, PipelineShape(pp=3, vpp=1)) == [
        ("rows", "2", "must be one row a rank: pp = 3")
    ]


def test_missing_and_doubled_passes_are_counted() -> None:
    text = "0F0,0F1,0F1,0B0\n1F0,1B0,1F1,1B1\n"
    rule = (
        "each place of the row runs micro-batches 0 to 1 once forward, "
        "and once backward (B, or I and W)"
    )
    assert problems(text) == [("row 1", "0B1 0 times, 0F1 2 times", rule)]


def test_a_weight_gradient_alone_is_not_a_backward_pass() -> None:
    text = "0F0,0B0,0W0\n1F0,1B0\n"
    assert [(key, found) for key, found, _ in problems(text, TWO, 1)] == [("row 1", "0W0 1 times")]


def test_a_deadlock_is_told_row_by_row() -> None:
    text = "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"
    assert problems(text) == [
        ("row 1", "0B0", "waits for ever for 1B0 of row 2"),
        ("row 2", "1F1", "waits for ever for 0F1 of row 1"),
    ]


def test_a_file_is_simulated_as_the_schedule_it_lists(tmp_path: Path) -> None:
    file = tmp_path / "schedule.csv"
    file.write_text(to_csv(build_schedule(ScheduleName.ZERO_BUBBLE_V, 2, 2, 8), V))
    plain = ParallelLayout(pp=2, vpp=2, schedule=ScheduleName.ZERO_BUBBLE_V)
    read = ParallelLayout(
        pp=2, vpp=2, schedule=ScheduleName.CSV, schedule_file=str(file), placement=Placement.V
    )
    cast = Forecaster(tiny_model(), tiny_job(), fake_stack(), fake_profile(), 2)
    cast.check(read)
    results = [cast.simulate(layout) for layout in (plain, read)]
    assert results[0].step_time == results[1].step_time
    assert [r.peak_memory for r in results] == [results[0].peak_memory] * 2


def test_a_file_that_is_not_there_is_a_problem_of_the_layout() -> None:
    layout = ParallelLayout(pp=2, schedule=ScheduleName.CSV, schedule_file="none.csv")
    cast = Forecaster(tiny_model(), tiny_job(), fake_stack(), fake_profile(), 2)
    with pytest.raises(InputError, match="no such file"):
        cast.check(layout)


def test_an_unreadable_kind_of_file_is_refused_as_csv() -> None:
    with pytest.raises(InputError, match="must be CSV"):
        check_schedule("0F0," + "x" * 200_000, TWO, 1, "s.csv")
