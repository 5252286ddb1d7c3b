"""Max-min fair rates: by hand, and the two properties that define them."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.sharing import max_min_rates

LINKS = ("a", "b", "c", "d")
FAR = 1e9


@pytest.mark.parametrize(
    ("routes", "caps", "capacity", "rates"),
    [
        ([["a"]], [FAR], {"a": 10.0}, [10.0]),
        ([["a"]], [4.0], {"a": 10.0}, [4.0]),
        ([["a"], ["a"]], [FAR, FAR], {"a": 10.0}, [5.0, 5.0]),
        ([["a"], ["a"]], [2.0, FAR], {"a": 10.0}, [2.0, 8.0]),
        # Bertsekas and Gallager: the flow over all links and one on each.
        (
            [["a", "b", "c"], ["a"], ["b"], ["c"]],
            [FAR] * 4,
            {"a": 4.0, "b": 6.0, "c": 10.0},
            [2.0, 2.0, 4.0, 8.0],
        ),
        # The cap of the first frees b for the second, and a is then shared by what is left.
        ([["a", "b"], ["b"], ["a"]], [1.0, FAR, FAR], {"a": 5.0, "b": 3.0}, [1.0, 2.0, 4.0]),
        ([[]], [7.0], {}, [7.0]),
        ([], [], {"a": 1.0}, []),
    ],
)
def test_rates_by_hand(
    routes: list[list[str]], caps: list[float], capacity: dict[Hashable, float], rates: list[float]
) -> None:
    assert max_min_rates(routes, caps, capacity) == rates


Flows = list[tuple[list[str], float]]
FLOWS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(LINKS), min_size=1, max_size=3, unique=True),
        st.floats(0.01, 100.0),
    ),
    min_size=1,
    max_size=8,
)
CAPACITY = st.fixed_dictionaries({link: st.floats(0.1, 100.0) for link in LINKS})


def rates_of(flows: Flows, capacity: dict[Hashable, float]) -> list[float]:
    return max_min_rates([route for route, _ in flows], [cap for _, cap in flows], capacity)


def loads_of(flows: Flows, rates: list[float]) -> dict[str, float]:
    rows = list(zip(flows, rates, strict=True))
    return {link: sum(rate for (route, _), rate in rows if link in route) for link in LINKS}


@given(FLOWS, CAPACITY)
def test_no_link_is_over_full_and_no_flow_over_its_cap(
    flows: Flows, capacity: dict[Hashable, float]
) -> None:
    rates = rates_of(flows, capacity)
    loads = loads_of(flows, rates)
    assert all(rate <= cap for (_, cap), rate in zip(flows, rates, strict=True))
    assert all(loads[link] <= capacity[link] * (1 + 1e-9) for link in LINKS)


@given(FLOWS, CAPACITY)
def test_every_flow_is_at_its_cap_or_among_the_fastest_on_a_full_link(
    flows: Flows, capacity: dict[Hashable, float]
) -> None:
    rates = rates_of(flows, capacity)
    loads = loads_of(flows, rates)
    fastest = {
        link: max(
            (r for (route, _), r in zip(flows, rates, strict=True) if link in route), default=0
        )
        for link in LINKS
    }

    def is_held(route: list[str], cap: float, rate: float) -> bool:
        full = [link for link in route if loads[link] >= capacity[link] * (1 - 1e-9)]
        return rate == cap or any(rate >= fastest[link] * (1 - 1e-9) for link in full)

    free = [flow for flow, rate in zip(flows, rates, strict=True) if not is_held(*flow, rate)]
    assert free == []


@given(FLOWS, CAPACITY)
def test_rates_do_not_depend_on_the_order_of_flows(
    flows: Flows, capacity: dict[Hashable, float]
) -> None:
    forward = rates_of(flows, capacity)
    assert rates_of(flows[::-1], capacity) == pytest.approx(forward[::-1])


@given(FLOWS, CAPACITY, st.floats(0.001, 1000.0))
def test_rates_rescale_with_the_unit(
    flows: Flows, capacity: dict[Hashable, float], factor: float
) -> None:
    scaled = [(route, cap * factor) for route, cap in flows]
    larger = {link: rate * factor for link, rate in capacity.items()}
    expected = [rate * factor for rate in rates_of(flows, capacity)]
    assert rates_of(scaled, larger) == pytest.approx(expected)
