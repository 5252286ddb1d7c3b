"""`rocm-smi --showtopo`: xGMI meshes from link types and weights."""

from __future__ import annotations

import pytest

from simulator.errors import InputError
from tests.simulator.topology.imports.samples import GB, capacity, options, read, unit_of


def table(title: str, cells: list[list[str]]) -> str:
    """Return one table, with a header as the tool prints it."""
    names = [f"GPU{n}" for n in range(len(cells))]
    lines = [f"{'=' * 20} {title} {'=' * 20}", "       " + "         ".join(names)]
    lines += [f"{name}   " + "         ".join(row) for name, row in zip(names, cells, strict=True)]
    return "\n".join([*lines, "", ""])


def square(count: int, cell: str) -> list[list[str]]:
    """Return a matrix of equal cells."""
    return [["0" if one == other else cell for other in range(count)] for one in range(count)]


NUMA = "======= Numa Nodes =======\n" + "".join(
    f"GPU[{n}]\t\t: (Topology) Numa Node: {n // 4}\n" for n in range(8)
)


def test_a_mesh_divides_the_profiles_bandwidth_over_its_peers() -> None:
    unit = unit_of(
        table("Link Type between two GPUs", square(8, "XGMI")) + NUMA, options("mi300x-node")
    )
    # 448 GB/s over seven peers.
    assert {capacity(unit, "gpu0", f"gpu{n}") for n in range(1, 8)} == {64 * GB}


def test_two_hops_are_no_link() -> None:
    kinds, weights = square(3, "XGMI"), square(3, "15")
    weights[0][2] = weights[2][0] = "30"
    text = table("Weight between two GPUs", weights) + table("Link Type between two GPUs", kinds)
    unit = unit_of(text, options("mi300x-node", link=50 * GB))
    assert [capacity(unit, "gpu0", "gpu1"), capacity(unit, "gpu0", "gpu2")] == [50 * GB, 0]


def test_pairs_over_pcie_cross_the_sockets() -> None:
    unit = unit_of(
        table("Link Type between two GPUs", square(8, "PCIE")) + NUMA, options("l40s-node")
    )
    assert capacity(unit, "numa0", "numa1") == 20 * GB


def test_a_row_that_is_cut_is_an_error_with_its_line() -> None:
    text = table("Link Type between two GPUs", square(3, "XGMI")).replace(
        "XGMI         0", "XGMI", 1
    )
    with pytest.raises(InputError, match="line 4: has 2 cells where the header names 3 devices"):
        read(text, options("mi300x-node"))


def test_a_link_type_that_is_unknown_is_an_error() -> None:
    with pytest.raises(InputError, match="a cell must be XGMI, PCIE or 0"):
        read(table("Link Type between two GPUs", square(2, "FOO")), options("mi300x-node"))
