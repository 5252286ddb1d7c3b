"""Compute and communication that run together: the closed form inside a layer, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.interference import exposed_seconds, interferes, mean_slowdown
from simulator.results import Category
from simulator.workload.stack_choices import KernelClass
from tests.fakes import fake_overlap

seconds = st.floats(0.0, 1e3)
shares = st.floats(0.0, 1.0)
slowdowns = st.floats(1.0, 10.0)


@pytest.mark.parametrize(
    ("comm", "window", "k", "m", "exposed"),
    [
        # A collective of 2 s ends after 4 s, in which 10 s of compute advance by 2 s: 12 s in all.
        (2.0, 10.0, 2.0, 2.0, 2.0),
        # Compute of 2 s ends after 4 s, in which 10 s of collective advance by 2 s: 12 s in all.
        (10.0, 2.0, 2.0, 2.0, 10.0),
        # The collective is not slowed: 4 s in which compute advances by 2 s, 10 - 2 are left.
        (4.0, 10.0, 2.0, 1.0, 2.0),
        # Compute is not slowed: 10 s in which the collective advances by 5 s, 7 are left.
        (12.0, 10.0, 1.0, 2.0, 7.0),
        # Worse than in turn: 12 s together for what takes 4 + 3 s, 1 s of compute left of 4.
        (3.0, 4.0, 4.0, 4.0, 9.0),
    ],
)
def test_what_runs_together_by_hand(
    comm: float, window: float, k: float, m: float, exposed: float
) -> None:
    assert exposed_seconds(comm, window, 1.0, k, m) == pytest.approx(exposed)


@given(seconds, seconds, shares)
def test_without_interference_the_shorter_one_is_hidden(
    comm: float, window: float, share: float
) -> None:
    hidden = share * min(comm, window)
    assert exposed_seconds(comm, window, share, 1.0, 1.0) == comm - hidden


@given(st.tuples(seconds, seconds, shares), slowdowns, slowdowns, st.floats(1.0, 2.0))
def test_slower_is_never_faster(
    work: tuple[float, float, float], k: float, m: float, more: float
) -> None:
    comm, window, share = work
    now = exposed_seconds(comm, window, share, k, m)
    slack = 1e-9 * (comm + window)
    assert exposed_seconds(comm, window, share, k * more, m) >= now - slack
    assert exposed_seconds(comm, window, share, k, m * more) >= now - slack


@given(seconds, seconds, slowdowns, slowdowns)
def test_the_total_lies_between_the_longer_alone_and_all_of_it_slowed(
    comm: float, window: float, k: float, m: float
) -> None:
    total = window + exposed_seconds(comm, window, 1.0, k, m)
    slack = 1e-9 * (comm + window)
    assert max(comm, window) - slack <= total <= k * window + m * comm + slack


def test_a_pass_is_slowed_by_the_mean_of_its_classes() -> None:
    overlap = fake_overlap(compute_slowdown={KernelClass.GEMM: 1.2, KernelClass.MEMORY_BOUND: 1.6})
    parts = {
        Category.GEMM: 5.0,
        Category.ATTENTION: 2.0,
        Category.MEMORY_BOUND: 2.0,
        Category.TENSOR_COMM: 1.0,
        Category.RECOMPUTE: 7.0,
    }
    assert mean_slowdown(parts, overlap) == pytest.approx((5 * 1.2 + 2 + 2 * 1.6 + 1) / 10)


def test_nothing_interferes_unless_a_stack_says_so() -> None:
    assert not interferes(fake_overlap())
    assert interferes(fake_overlap(comm_slowdown=1.1))
    assert interferes(fake_overlap(compute_slowdown={KernelClass.GEMM: 1.1}))
