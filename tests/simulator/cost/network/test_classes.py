"""Links that behave alike are one class."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from simulator.cost.network.classes import classify, contested
from simulator.cost.network.column import Column
from simulator.topology.graph import FloatArray

LOADS = arrays(np.float64, (4, 9), elements=st.sampled_from((0.0, 0.5, 1.0, 2.0)))
CAPACITIES = arrays(np.float64, 9, elements=st.sampled_from((1.0, 3.0)))


@given(loads=LOADS, capacity=CAPACITIES)
def test_links_are_one_class_where_capacity_and_all_loads_agree(
    loads: FloatArray, capacity: FloatArray
) -> None:
    classes = classify([Column.of(row) for row in loads], capacity)
    alike = {(capacity[link], *loads[:, link]) for link in range(9) if loads[:, link].any()}
    found = {(classes.capacity[n], *classes.weights[n]) for n in range(len(classes.first))}
    assert (found, len(classes.first)) == (alike, len(alike))


@given(loads=LOADS, capacity=CAPACITIES)
def test_every_loaded_link_is_a_member_of_one_class(
    loads: FloatArray, capacity: FloatArray
) -> None:
    classes = classify([Column.of(row) for row in loads], capacity)
    members = [classes.members(number).tolist() for number in range(len(classes.first))]
    assert (
        sorted(link for each in members for link in each)
        == np.flatnonzero(loads.any(axis=0)).tolist()
    )
    assert [len(each) for each in members] == classes.count.tolist()


def test_links_that_one_stream_loads_meet_nothing() -> None:
    columns = [Column.of(np.array(row)) for row in ([1.0, 1.0, 0.0], [0.0, 1.0, 1.0])]
    classes = classify(columns, np.ones(3))
    apart, together = (contested(classes, lanes) for lanes in ((0, 1), (5, 5)))
    assert (classes.first[apart].tolist(), together.tolist()) == ([1], [])


def test_a_class_that_another_always_holds_up_is_left_out() -> None:
    columns = [Column.of(np.array(row)) for row in ([1.0, 2.0, 0.5], [1.0, 2.0, 3.0])]
    classes = classify(columns, np.ones(3))
    assert sorted(classes.first[contested(classes, (0, 1))].tolist()) == [1, 2]
