"""Files of topologies: what they may say, and what is said of those that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError, Problem
from simulator.topology.build import load_topology, own_context
from simulator.topology.registry import FABRICS, UNITS
from simulator.topology.topology_file import parse_topology, read_topology
from tests.simulator.topology.machines import (
    SMALLEST_FABRICS,
    SMALLEST_UNITS,
    built,
    problems_of,
    table,
)

STAR = {"kind": "nvswitch"}
KEYS = sorted(
    {key for kind in (*UNITS.values(), *FABRICS.values()) for key in kind.file.model_fields}
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 9)
    | st.floats()
    | st.sampled_from(
        ["50 GB/s", "0 GB/s", "1 us", "gpu0", "socket0", "", "leaf0", "0-3", "never"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=8,
)


def test_an_unknown_kind_is_answered_with_the_nearest() -> None:
    assert problems_of(table({"kind": "nvswich"}, {"kind": "fattree"})) == [
        "net.toml: unit.kind: is no kind of unit (found 'nvswich')\n"
        "    fix: did you mean 'nvswitch'?",
        "net.toml: fabric.kind: is no kind of fabric (found 'fattree')\n"
        "    fix: did you mean 'fat-tree'?",
    ]


def test_a_table_without_a_kind_is_answered_with_all() -> None:
    (found,) = problems_of(table({}))
    assert found == (
        "net.toml: unit.kind: this key is required\n"
        "    fix: one of: bare, graph, mesh, nvswitch, pcie"
    )


def test_errors_of_all_tables_are_said_at_once() -> None:
    given: dict[str, Any] = {
        "tilte": "misspelt",
        "unit": {"kind": "nvswitch", "bandwidth": "450"},
        "fabric": {"kind": "fat-tree", "tiers": [{}, {"oversubscription": -1.0}]},
    }
    assert [line.partition(": ")[2].partition(":")[0] for line in problems_of(given)] == [
        "title",
        "tilte",
        "unit.bandwidth",
        "fabric.tiers[1].oversubscription",
    ]


@pytest.mark.parametrize("unit", ["nvswitch", 4, ["nvswitch"], None])
def test_a_unit_that_is_no_table_is_refused(unit: Any) -> None:
    with pytest.raises(InputError, match="unit"):
        parse_topology({"title": "small", "unit": unit}, "net.toml")


def test_an_empty_file_says_what_is_needed() -> None:
    with pytest.raises(InputError) as caught:
        parse_topology({}, "net.toml")
    assert [problem.key for problem in caught.value.problems] == ["title", "unit"]


def test_what_neither_file_nor_profile_says_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "net.toml"
    path.write_text(tomlkit.dumps(table(STAR)))
    with pytest.raises(InputError) as caught:
        load_topology(path)
    assert str(caught.value) == (
        f"{path}: unit.accelerators: is needed: neither the file nor a profile says it\n"
        "    fix: write unit.accelerators in the file, or name a profile"
    )


def test_a_file_may_name_the_profile_that_fills_it_in(tmp_path: Path) -> None:
    path = tmp_path / "net.toml"
    path.write_text(tomlkit.dumps({"profile": "dgx-h100", **table(STAR)}))
    assert own_context(read_topology(path)).scale_up_bandwidth == 450e9


def test_a_nic_table_stands_before_the_profile() -> None:
    nic = {"per_node": 2, "bandwidth": "10 GB/s", "efficiency": 0.5, "latency": "8 us"}
    topology = built({**table(STAR, {"kind": "flat"}), "nic": nic}, 2)
    assert topology.fabric is not None
    assert topology.fabric.port_bandwidth.tolist() == [[5e9, 5e9], [5e9, 5e9]]
    assert topology.fabric.port_latency.tolist() == [[4e-6, 4e-6], [4e-6, 4e-6]]


def test_several_units_need_a_fabric() -> None:
    assert problems_of(table(STAR), 2) == [
        "net.toml: fabric: nothing joins the units (found 2 units)\n"
        '    fix: add a table such as [fabric] with kind = "fat-tree", or take 1 unit'
    ]


def test_a_number_of_units_in_the_file_is_taken_where_none_is_given() -> None:
    assert built({**table(STAR, {"kind": "flat"}), "units": 3}, 0).units == 3


def test_more_accelerators_than_memory_holds_are_refused() -> None:
    given = table({"kind": "bare", "accelerators": 100_000}, {"kind": "flat"})
    assert problems_of(given, 11) == [
        "net.toml: units: a topology has at most 1000000 accelerators "
        "(found 11 units of 100000 accelerators)\n    fix: take 10 units"
    ]


@given(
    unit=st.sampled_from(sorted(UNITS)),
    fabric=st.sampled_from(sorted(FABRICS)),
    changed=st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=3),
    units=st.integers(1, 4),
)
def test_any_value_of_any_key_is_built_or_refused_in_words(
    unit: str, fabric: str, changed: dict[str, Any], units: int
) -> None:
    inside = [
        {key: value for key, value in changed.items() if key in kind.file.model_fields}
        for kind in (UNITS[unit], FABRICS[fabric])
    ]
    given_here = table(
        {"kind": unit, **SMALLEST_UNITS[unit], **inside[0]},
        {"kind": fabric, **SMALLEST_FABRICS[fabric], **inside[1]},
    )
    said = refusal(given_here, units)
    assert all(problem.where == "net.toml" and problem.key and problem.rule for problem in said)


def refusal(given_here: dict[str, Any], units: int) -> tuple[Problem, ...]:
    """Return what is wrong with a table; nothing where it builds."""
    try:
        built(given_here, units)
    except InputError as error:
        return error.problems
    return ()
