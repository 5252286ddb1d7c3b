"""Meshes by hand: who has how many links to whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator.topology.units.mesh import HYBRID_CUBE_MESH
from tests.simulator.topology.machines import built, problems_of, table

SQUARE = [[0, 2, 0, 1], [2, 0, 1, 0], [0, 1, 0, 2], [1, 0, 2, 0]]


def between(**keys: Any) -> dict[str, float]:
    graph = built(table({"kind": "mesh", **keys})).unit.graph
    return {
        graph.link_name(link): float(graph.bandwidth[link])
        for link in range(len(graph))
        if "nic" not in graph.link_name(link)
    }


def test_all_to_all_shares_the_bandwidth_of_an_accelerator_over_its_peers() -> None:
    found = between()
    assert (len(found), set(found.values())) == (12, {100e9})


def test_a_pair_with_two_links_has_twice_the_bandwidth() -> None:
    found = between(links=SQUARE, link_bandwidth="25 GB/s")
    assert (found["gpu0 -> gpu1"], found["gpu3 -> gpu0"]) == (50e9, 25e9)


def test_a_pair_without_links_has_no_cable() -> None:
    assert "gpu0 -> gpu2" not in between(links=SQUARE)


def test_a_link_is_the_bandwidth_of_an_accelerator_over_its_links() -> None:
    assert between(links=SQUARE)["gpu0 -> gpu1"] == 300e9 * 2 / 3


def test_each_v100_has_six_links() -> None:
    assert np.sum(HYBRID_CUBE_MESH, axis=1).tolist() == [6] * 8


def test_the_two_halves_of_the_cube_are_alike() -> None:
    matrix = np.array(HYBRID_CUBE_MESH)
    assert np.array_equal(matrix[:4, :4], matrix[4:, 4:])


def test_links_that_differ_from_the_other_end_are_named() -> None:
    assert problems_of(table({"kind": "mesh", "accelerators": 2, "links": [[0, 2], [1, 1]]})) == [
        "net.toml: unit.links[0][1]: must be the same from both ends, and 0 from an accelerator "
        "to itself (found 2, and 1 at [1][0])\n    fix: write 2 at both",
        "net.toml: unit.links[1][1]: must be the same from both ends, and 0 from an accelerator "
        "to itself (found 1, and 1 at [1][1])\n    fix: 0",
    ]


@pytest.mark.parametrize(
    ("links", "keys"),
    [
        ("hybrid-cube-mesh", ["unit.links"]),
        ([[0, 1], [1]], ["unit.links[1]", "unit.links"]),
    ],
)
def test_a_matrix_of_another_size_is_refused(links: Any, keys: list[str]) -> None:
    found = problems_of(table({"kind": "mesh", "links": links}))
    assert [line.split(": ")[1] for line in found] == keys


def test_a_mistaken_name_of_a_mesh_is_answered_with_the_names() -> None:
    (found,) = problems_of(table({"kind": "mesh", "links": "hybrid-cube"}))
    assert "'all-to-all' or 'hybrid-cube-mesh'" in found


def test_an_accelerator_without_links_cannot_be_reached() -> None:
    alone = [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    found = problems_of(table({"kind": "mesh", "accelerators": 3, "links": alone}))
    assert found[0] == (
        "net.toml: unit: nothing joins these accelerators (1) to node0/gpu0 (found node0/gpu2)\n"
        "    fix: add the cables that join them, or leave the devices out"
    )
