"""The measuring loop on clocks that are made up."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from time import perf_counter

import pytest

from calibrate.limits import Limits
from calibrate.measure_loop import measure_runs, summarise
from calibrate.measuring import Alone, Outcome

LIMITS = Limits(block_seconds=0.05, blocks=9, max_seconds=20.0)


@dataclass(slots=True)
class Clock:
    """Runs take what `times` says one after another; the last is repeated for ever."""

    times: tuple[float, ...]
    runs: list[int] = field(default_factory=list)

    def __call__(self, runs: int) -> float:
        index = min(len(self.runs), len(self.times) - 1)
        self.runs.append(runs)
        return self.times[index] * runs


@dataclass(slots=True)
class Noise:
    """Runs take 1 ms and up to `share` more, and now and then a block takes ten times as long."""

    share: float
    slow_every: int = 10**9
    blocks: int = 0
    random: random.Random = field(default_factory=lambda: random.Random(1))

    def __call__(self, runs: int) -> float:
        self.blocks += 1
        factor = 10 if self.blocks % self.slow_every == 0 else 1
        return runs * 1e-3 * (1 + self.share * self.random.random()) * factor


def test_a_steady_clock_is_read_exactly() -> None:
    assert measure_runs(Clock((2e-3,)), Alone(), LIMITS) == Outcome(
        seconds=2e-3, spread=0.0, samples=9
    )


def test_blocks_are_filled_with_as_many_runs_as_take_the_block_time() -> None:
    clock = Clock((2e-3,))
    measure_runs(clock, Alone(), LIMITS)

    assert clock.runs[0] == 1
    assert clock.runs[-9:] == [25] * 9


def test_a_run_longer_than_a_block_is_timed_by_itself() -> None:
    clock = Clock((0.5,))
    measure_runs(clock, Alone(), LIMITS)

    assert set(clock.runs) == {1}


def test_a_first_run_that_compiles_does_not_count() -> None:
    clock = Clock((3.0, 1e-3))
    outcome = measure_runs(clock, Alone(), LIMITS.model_copy(update={"max_seconds": 1.0}))

    assert outcome.seconds == pytest.approx(1e-3)
    assert outcome.samples == 9
    assert clock.runs[-1] == 50


def test_warm_up_goes_on_until_three_medians_agree() -> None:
    slow_start = tuple(1e-3 * (1 + 2.0 * 0.8**block) for block in range(60))
    outcome = measure_runs(Clock(slow_start), Alone(), LIMITS)

    assert outcome.seconds == pytest.approx(1e-3, rel=0.05)


def test_a_clock_that_never_settles_is_measured_and_shows_its_spread() -> None:
    rising = tuple(1e-3 * 1.1**block for block in range(200))
    outcome = measure_runs(Clock(rising), Alone(), LIMITS)

    assert outcome.samples >= 3
    assert outcome.spread > LIMITS.spread


def test_outliers_are_dropped_and_counted() -> None:
    times = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 7.0]

    outcome = summarise(times, times, Alone())
    assert (outcome.seconds, outcome.samples, outcome.outliers) == (1.0, 6, 1)


def test_of_three_blocks_none_is_dropped() -> None:
    times = [1.0, 1.001, 1.5]

    outcome = summarise(times, times, Alone())
    assert (outcome.samples, outcome.outliers) == (3, 0)
    assert outcome.spread > 0.1


def test_a_slow_block_now_and_then_does_not_move_the_result() -> None:
    outcome = measure_runs(Noise(share=0.02, slow_every=5), Alone(), LIMITS)

    assert outcome.seconds == pytest.approx(1.01e-3, rel=0.01)
    assert outcome.outliers >= 1
    assert outcome.spread < LIMITS.spread


def test_two_speeds_are_noisy_and_not_averaged_away() -> None:
    times = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0]

    assert summarise(times, times, Alone()).spread == pytest.approx(1.0)


def test_quartiles_are_those_of_the_blocks() -> None:
    # Of 1.00, 1.01, ... 1.08 the quartiles are 1.02 and 1.06.
    times = [1.0 + 0.01 * step for step in range(9)]

    assert summarise(times, times, Alone()).spread == pytest.approx(0.04 / 1.04)


def test_no_block_is_begun_after_the_longest_time() -> None:
    clock = Clock((6.0,))
    outcome = measure_runs(clock, Alone(), LIMITS)

    # Two runs of warm-up take 12 s, more than half of 20 s, and two blocks 12 s: then a third.
    assert (outcome.samples, len(clock.runs)) == (3, 6)


@dataclass(slots=True)
class Meeting:
    """Where two ranks exchange a number; a rank that comes alone breaks it after a second."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(2, timeout=5))
    values: dict[int, float] = field(default_factory=dict)

    def exchange(self, rank: int, value: float) -> tuple[float, ...]:
        self.values[rank] = value
        self.barrier.wait()
        both = self.values[0], self.values[1]
        self.barrier.wait()
        return both


@dataclass(frozen=True, slots=True)
class OfTwo:
    rank: int
    meeting: Meeting
    size: int = 2

    def slowest(self, seconds: float) -> float:
        return max(self.meeting.exchange(self.rank, seconds))

    def gather(self, seconds: float) -> tuple[float, ...]:
        return self.meeting.exchange(self.rank, seconds)

    def barrier(self) -> None:
        self.meeting.exchange(self.rank, 0.0)


def test_ranks_of_different_speed_do_the_same_runs_and_report_the_slower() -> None:
    meeting, clocks = Meeting(), (Clock((5.0, 1e-3)), Clock((1e-3, 3e-3)))
    found: dict[int, Outcome] = {}

    def rank(number: int) -> None:
        found[number] = measure_runs(clocks[number], OfTwo(number, meeting), LIMITS)

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert clocks[0].runs == clocks[1].runs
    assert found[0] == found[1]
    assert found[0].seconds == pytest.approx(3e-3)
    assert found[0].by_rank == pytest.approx((1e-3, 3e-3))


def test_ranks_rest_behind_each_block_for_a_share_of_it() -> None:
    clock = Clock((1e-3,))
    limits = Limits(block_seconds=3e-3, blocks=3, rest=0.5)
    start = perf_counter()
    outcome = measure_runs(clock, Alone(), limits)
    blocks = clock.runs[1:]

    assert perf_counter() - start >= 0.5 * 1e-3 * sum(blocks)
    assert outcome == Outcome(seconds=1e-3, spread=0.0, samples=3)
