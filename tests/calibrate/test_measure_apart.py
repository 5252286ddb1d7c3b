"""Collectives that ranks start apart are timed on the rank that starts last."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibrate.limits import APART_SECONDS
from calibrate.measure_apart import MOST_CALLS, Apart, wait_busily
from calibrate.points import CollectivePoint, Timing
from simulator.parallel.groups import Collective
from tests.calibrate.gloo_ranks import on_ranks


@dataclass(slots=True, kw_only=True)
class Heard:
    """One rank of two; remembers what it tells the others."""

    rank: int
    size: int = 2
    said: list[float] = field(default_factory=list)

    def slowest(self, seconds: float) -> float:
        self.said.append(seconds)
        return seconds

    def gather(self, seconds: float) -> tuple[float, ...]:
        return (seconds,) * self.size

    def barrier(self) -> None:
        return


def heard(index: int | None, seconds: float, runs: int) -> tuple[list[float], list[float], float]:
    """Return the waits of a rank before a call of `seconds`, what it told, and its result."""
    waits: list[float] = []
    ranks = Heard(rank=index or 0)
    run = Apart(ranks=ranks, size=2, index=index, call=lambda: seconds, wait=waits.append)
    result = run(runs)
    return waits, ranks.said, result


def test_only_the_rank_that_starts_last_tells_its_time() -> None:
    (waits, said, _), (other_waits, other_said, _) = heard(0, 3.0, 12), heard(1, 5.0, 12)

    is_last = [mine > other for mine, other in zip(waits, other_waits, strict=True)]
    assert said == [3.0 if last else 0.0 for last in is_last]
    assert other_said == [0.0 if last else 5.0 for last in is_last]
    assert set(is_last) == {True, False}


def test_waits_are_spread_up_to_the_longest() -> None:
    waits, *_ = heard(0, 1.0, MOST_CALLS)

    assert max(waits) <= APART_SECONDS
    assert max(waits) - min(waits) > APART_SECONDS / 2


def test_long_blocks_make_few_calls_and_answer_for_all() -> None:
    @dataclass(slots=True, kw_only=True)
    class Agreed(Heard):
        def slowest(self, seconds: float) -> float:
            return 2.0

    assert Apart(ranks=Agreed(rank=0), size=2, index=0, wait=lambda _: None)(1000) == 2000.0


def test_a_rank_outside_takes_as_many_decisions_and_no_time() -> None:
    waits, said, result = heard(None, 3.0, 7)

    assert (waits, said, result) == ([], [0.0] * 7, 0.0)


def test_waiting_is_over_after_its_time_and_not_before() -> None:
    from time import perf_counter

    begun = perf_counter()
    wait_busily(0.002)
    assert perf_counter() - begun >= 0.002


def test_gloo_ranks_agree_on_what_the_last_starter_takes(tmp_path: Path) -> None:
    first, *others = on_ranks(3, _measured_apart, tmp_path)

    assert all(other == first for other in others)
    for seconds, (one, two, outside) in first:
        assert seconds > 0
        assert one == two > 0
        assert outside == 0


def _measured_apart(context: Any) -> list[tuple[float, tuple[float, ...]]]:
    from calibrate.measure_collectives import measure_collective

    outcomes = [
        measure_collective(
            CollectivePoint(collective=kind, ranks=2, nodes=1, bytes=2.0**20, timing=Timing.APART),
            context,
        )
        for kind in (Collective.ALL_GATHER, Collective.ALL_TO_ALL)
    ]
    return [(outcome.seconds, outcome.by_rank) for outcome in outcomes]
