"""Whole runs against arithmetic on paper and against closed forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.goodput.draws import RandomDraws
from planner.goodput.interval import expected_stretch, first_order_goodput
from planner.goodput.process import play_run
from planner.goodput.rates import NOTHING_FAILS, Hazard
from planner.goodput.shape import Cause, Level, Played, RunShape

HOUR = 3600.0
WHOLE = (Level(nodes=10),)


class FixedDraws:
    """Failures after given hazards, all of which lose a node or none; then no more."""

    def __init__(self, hazards: Sequence[float], *, loses: bool = False) -> None:
        self._hazards: Iterator[float] = iter(hazards)
        self._loses = loses

    def failure(self) -> float:
        return next(self._hazards, inf)

    def loses_node(self, share: float) -> bool:
        return self._loses

    def repair(self) -> float:
        return 1.0


def spent(run: Played) -> dict[Cause, float]:
    """Return the seconds of a run by cause, without those that took none."""
    return {cause: seconds for cause, seconds in run.seconds.items() if seconds}


def shape(**changes: object) -> RunShape:
    """Return a run of 1,000 s of work with a checkpoint of 10 s every 100 s."""
    known = {"work": 1000.0, "interval": 100.0, "stall": 10.0, "levels": WHOLE, **changes}
    return RunShape(**known)  # type: ignore[arg-type]


def test_without_failures_a_run_takes_its_work_and_its_checkpoints() -> None:
    run = play_run(shape(), NOTHING_FAILS, FixedDraws([]))
    assert (run.wall, spent(run)) == (1100.0, {Cause.USEFUL: 1000.0, Cause.CHECKPOINT: 100.0})


def test_an_asynchronous_checkpoint_costs_its_copy_and_at_the_end_its_write() -> None:
    run = play_run(shape(stall=1.0, write=30.0), NOTHING_FAILS, FixedDraws([]))
    assert (run.wall, run.seconds[Cause.CHECKPOINT]) == (1040.0, 40.0)


def test_a_failure_loses_what_came_after_the_last_safe_checkpoint() -> None:
    # Fails after 250 s: two cycles of 110 s are safe, 30 s are lost.
    run = play_run(
        shape(detection=5.0, restart=20.0), Hazard(per_second=0.01, loses_node=0), FixedDraws([2.5])
    )
    assert (run.wall, run.failures, spent(run)) == (
        1155.0,
        1,
        {
            Cause.USEFUL: 1000.0,
            Cause.CHECKPOINT: 100.0,
            Cause.LOST: 30.0,
            Cause.DETECTION: 5.0,
            Cause.RESTART: 20.0,
        },
    )


def test_a_checkpoint_that_is_still_being_written_does_not_count() -> None:
    # Cycles of 101 s; at 225 s the second checkpoint, of 202 s, is not in storage until 232 s.
    run = play_run(
        shape(stall=1.0, write=30.0), Hazard(per_second=0.01, loses_node=0), FixedDraws([2.25])
    )
    assert run.seconds[Cause.LOST] == pytest.approx(225.0 - 101.0)


def test_a_restart_that_fails_is_done_again() -> None:
    hazard = Hazard(per_second=0.01, loses_node=0)
    run = play_run(shape(detection=5.0, restart=20.0), hazard, FixedDraws([2.5, 0.15]))
    # The second failure comes after 5 s of detection and 10 s of the restart.
    assert (run.seconds[Cause.DETECTION], run.seconds[Cause.RESTART]) == pytest.approx((10.0, 30.0))


def test_a_spare_node_takes_over_at_once() -> None:
    hazard = Hazard(per_second=0.01, loses_node=1)
    run = play_run(shape(spares=1, repair=5000.0), hazard, FixedDraws([2.5], loses=True))
    assert (run.wall, run.seconds[Cause.WAITING]) == (1130.0, 0.0)


def test_without_spares_the_job_waits_for_the_repair() -> None:
    hazard = Hazard(per_second=0.01, loses_node=1)
    run = play_run(shape(repair=5000.0), hazard, FixedDraws([2.5], loses=True))
    assert (run.wall, run.seconds[Cause.WAITING]) == (6130.0, 5000.0)


def test_an_elastic_job_goes_on_slower_until_a_node_is_back() -> None:
    # From 250 s on at half the speed, cycles of 210 s; the node is back at 650 s, after 400 s,
    # and the job grows at the end of the second cycle, 420 s after it had shrunk.
    levels = (*WHOLE, Level(nodes=9, slowdown=2.0))
    hazard = Hazard(per_second=0.01, loses_node=1)
    run = play_run(
        shape(repair=400.0, restart=7.0, levels=levels), hazard, FixedDraws([2.5], loses=True)
    )
    # 393 s of those 400 s are left when it trains again, so that the second cycle still counts.
    assert spent(run) == {
        Cause.USEFUL: 1000.0,
        Cause.CHECKPOINT: 100.0,
        Cause.LOST: 30.0,
        Cause.RESTART: 14.0,
        Cause.DEGRADED: 200.0,
    }


def test_a_planned_stop_begins_with_a_checkpoint_of_its_own() -> None:
    # Due after 300 s, in the third cycle of 110 s: two are done, 80 s of the third are trained and
    # saved in 10 s. Back after 50 + 7 s; due again 300 s after the stop, 293 s into the stretch:
    # 273 s are trained and saved by then, 553 s in all. The third stop makes it 826 s. The rest,
    # 174 s, takes two checkpoints more.
    run = play_run(
        shape(maintenance_every=300.0, maintenance=50.0, restart=7.0), NOTHING_FAILS, FixedDraws([])
    )
    assert (run.saves, spent(run)) == (
        3,
        {
            Cause.USEFUL: 1000.0,
            Cause.CHECKPOINT: 110.0,
            Cause.MAINTENANCE: 150.0,
            Cause.RESTART: 21.0,
        },
    )


def test_a_planned_stop_in_the_middle_of_a_checkpoint_waits_for_that_one() -> None:
    # Cycles of 101 s, in storage 30 s later: at 100.5 s the copy of the first is under way.
    run = play_run(
        shape(work=150.0, stall=1.0, write=30.0, maintenance_every=100.5, maintenance=50.0),
        NOTHING_FAILS,
        FixedDraws([]),
    )
    # 131 s, the stop, 50 s of work, 1 s of copy, 30 s of write; beside the first write, training
    # of 30 s is lost.
    assert (run.wall, run.saves, run.seconds[Cause.LOST]) == (262.0, 0, 30.0)


def test_a_failure_in_the_checkpoint_of_a_planned_stop_loses_what_it_would_have_saved() -> None:
    # Due after 50 s, saved by 60 s; fails at 55 s, so that nothing is safe, and stops at once when
    # it is back.
    run = play_run(
        shape(work=90.0, restart=7.0, maintenance_every=50.0, maintenance=200.0),
        Hazard(per_second=0.01, loses_node=0),
        FixedDraws([0.55]),
    )
    # 55 s, 7 s; stop of 200 s, 7 s; 43 s of training, then 10 s, 200 s and 7 s; 43 s, 10, 200, 7;
    # the last 4 s and the last checkpoint.
    assert (run.seconds[Cause.LOST], run.saves, run.seconds[Cause.MAINTENANCE]) == (55.0, 2, 600.0)
    assert run.wall == pytest.approx(55 + 7 + 207 + 2 * (43 + 10 + 207) + 4 + 10)


def test_without_its_own_checkpoint_a_planned_stop_waits_for_the_next_regular_one() -> None:
    # Due after 300 s: stops at the end of the third cycle, after 330 s; then again 300 s later.
    run = play_run(
        shape(maintenance_every=300.0, maintenance=50.0, restart=7.0, saves_first=False),
        NOTHING_FAILS,
        FixedDraws([]),
    )
    assert spent(run) == {
        Cause.USEFUL: 1000.0,
        Cause.CHECKPOINT: 100.0,
        Cause.MAINTENANCE: 150.0,
        Cause.RESTART: 21.0,
    }


def many(run: RunShape, hazard: Hazard, count: int) -> list[Played]:
    """Return `count` runs of seed 3."""
    return [play_run(run, hazard, RandomDraws(3, number)) for number in range(count)]


@pytest.mark.parametrize(("mtbf", "restart"), [(24 * HOUR, 600.0), (HOUR, 300.0), (1800.0, 60.0)])
def test_the_mean_run_is_dalys_closed_form(mtbf: float, restart: float) -> None:
    """Exponential failures, nodes always there: Daly 2006, the complete cost function."""
    run = shape(work=50 * 600.0, interval=600.0, stall=30.0, restart=restart)
    walls = [each.wall for each in many(run, Hazard(per_second=1 / mtbf, loses_node=0), 200)]
    error = stdev(walls) / len(walls) ** 0.5
    exact = 50 * expected_stretch(600.0, 30.0, mtbf, restart)
    assert abs(fmean(walls) - exact) < 3.5 * error


def test_the_first_order_is_near_where_failures_are_rare() -> None:
    mtbf = 48 * HOUR
    run = shape(work=400 * HOUR, interval=HOUR, stall=60.0, restart=600.0)
    found = fmean(one.goodput for one in many(run, Hazard(per_second=1 / mtbf, loses_node=0), 40))
    assert found == pytest.approx(first_order_goodput(HOUR, 60.0, mtbf, 600.0), abs=0.004)


@st.composite
def runs(draw: st.DrawFn) -> RunShape:
    """Draw a run of 1,000 s on 10 nodes or 8."""
    slower = Level(nodes=8, slowdown=draw(st.floats(1.0, 3.0)))
    return shape(
        interval=draw(st.floats(10.0, 500.0)),
        write=draw(st.floats(0.0, 100.0)),
        detection=3.0,
        restart=5.0,
        repair=2000.0,
        spares=draw(st.integers(0, 3)),
        levels=draw(st.sampled_from([WHOLE, (*WHOLE, slower)])),
        maintenance_every=draw(st.sampled_from([inf, 400.0])),
        maintenance=20.0,
        saves_first=draw(st.booleans()),
    )


@given(run=runs(), mtbf=st.floats(300.0, 1e6), number=st.integers(0, 1000))
def test_causes_add_up_to_the_wall_time(run: RunShape, mtbf: float, number: int) -> None:
    played = play_run(run, Hazard(per_second=1 / mtbf, loses_node=0.7), RandomDraws(1, number))
    assert sum(played.seconds.values()) == pytest.approx(played.wall)
    assert played.seconds[Cause.USEFUL] == pytest.approx(1000.0)


def test_events_grow_with_failures_and_not_with_steps_or_checkpoints() -> None:
    hazard = Hazard(per_second=1 / HOUR, loses_node=1)
    short = play_run(shape(work=1e6, spares=10**4), hazard, RandomDraws(0, 0))
    assert short.events <= 3 * short.failures + 1
