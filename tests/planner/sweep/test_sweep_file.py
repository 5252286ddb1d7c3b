"""A sweep file says which combinations there are, and all that is wrong with it at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.sweep.sweep_file import Axis, load_sweep
from simulator.errors import InputError
from tests.planner.sweep.sweeps import sweep


def test_keys_are_crossed_and_the_last_changes_fastest() -> None:
    found = sweep({"cluster.nodes": [1, 2], "job.global_batch_size": [64, 128]})
    assert [tuple(each.values()) for each in found.combinations()] == [
        (1, 64),
        (1, 128),
        (2, 64),
        (2, 128),
    ]


def test_keys_of_one_table_change_together() -> None:
    group = {"cluster.profile": ["dgx-a100-80gb", "dgx-h100"], "cluster.nodes": [2, 1]}
    found = sweep({"job.seq_length": [4096, 8192]}, together=[group])
    assert [tuple(each.values()) for each in found.combinations()] == [
        (4096, "dgx-a100-80gb", 2),
        (4096, "dgx-h100", 1),
        (8192, "dgx-a100-80gb", 2),
        (8192, "dgx-h100", 1),
    ]


def test_dotted_keys_and_tables_in_tables_are_the_same(tmp_path: Path) -> None:
    head = '[sweep]\nscenario = "x.toml"\n'
    dotted, nested = tmp_path / "dotted.toml", tmp_path / "nested.toml"
    dotted.write_text(head + '[sweep.over]\n"cluster.nodes" = [1, 2]\n"search.tp" = [[1], [2]]\n')
    nested.write_text(head + "[sweep.over]\ncluster.nodes = [1, 2]\nsearch.tp = [[1], [2]]\n")
    axes = (
        Axis(keys=("cluster.nodes",), points=((1,), (2,))),
        Axis(keys=("search.tp",), points=(([1],), ([2],))),
    )
    assert (load_sweep(dotted).axes, load_sweep(nested).axes) == (axes, axes)


def test_a_scenario_is_found_beside_its_sweep(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text('[sweep]\nscenario = "x.toml"\n[sweep.over]\n"cluster.nodes" = [1]\n')
    assert load_sweep(path).scenario == tmp_path / "x.toml"


def test_all_that_is_wrong_with_the_axes_is_said_at_once() -> None:
    uneven = {"cluster.nodes": [1, 2], "job.seq_length": [4096]}
    with pytest.raises(InputError) as caught:
        sweep({"cluster.nodes": [1, 1]}, together=[uneven])
    assert [problem.rule for problem in caught.value.problems] == [
        "stands in two of the tables sweep.over and sweep.together",
        "has the same value twice",
        "keys that change together need equally many values",
    ]


def test_a_sweep_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="names no key to sweep"):
        sweep({})


def test_too_many_combinations_are_refused() -> None:
    many = list(range(1, 102))
    with pytest.raises(InputError, match=r"at most 10,000 combinations \(found 10,201\)"):
        sweep({"cluster.nodes": many, "job.global_batch_size": many})


def test_a_key_without_a_list_of_values_says_so(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text('[sweep]\nscenario = "x.toml"\n[sweep.over]\n"cluster.nodes" = 8\nx = []\n')
    with pytest.raises(InputError) as caught:
        load_sweep(path)
    assert [problem.key for problem in caught.value.problems] == [
        "sweep.over.cluster.nodes",
        "sweep.over.x",
    ]
