"""`nvidia-smi topo -m`: trees from distances, NVLinks from the profile, and what cannot be read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.topology.graph import DeviceKind
from tests.simulator.topology.imports.samples import GB, capacity, options, read, smi, unit_of, way


def number(name: str) -> int:
    """Return the number in a device's name."""
    return int(re.sub(r"\D", "", name))


def dgx(one: str, other: str) -> str:
    """Return a cell of a node of 8 GPUs on a switch, each beside its NIC, two NICs for storage."""
    if one.startswith("GPU") and other.startswith("GPU"):
        return "NV18"
    if number(one) == number(other):
        return "PIX"
    return "NODE" if number(one) % 8 // 4 == number(other) % 8 // 4 else "SYS"


DGX = smi(8, 10, dgx, lambda gpu: str(gpu // 4))


def test_links_behind_a_switch_have_the_profiles_rate() -> None:
    unit = unit_of(DGX)
    # 450 GB/s of a DGX H100 are 18 links of 25 GB/s.
    assert [capacity(unit, f"gpu{n}", "nvswitch") for n in range(8)] == [450 * GB] * 8


def test_a_gpu_and_its_nic_share_a_pcie_switch() -> None:
    unit = unit_of(DGX)
    path = way(unit, "gpu5", "mlx5_5")
    assert (len(path), capacity(unit, path[0], path[1])) == (3, 63 * GB)


def test_devices_of_two_numa_nodes_meet_over_the_sockets() -> None:
    path = way(unit_of(DGX), "gpu0", "mlx5_7")
    assert [name for name in path if name.startswith("numa")] == ["numa0", "numa1"]


def test_each_gpu_uses_its_nearest_nic() -> None:
    assert unit_of(DGX).affinity == tuple(f"mlx5_{n}" for n in range(8))


def test_cards_for_storage_are_left_out_and_named() -> None:
    found = read(DGX)
    assert found.unit is not None
    assert [nic.name for nic in found.unit.nics] == [f"mlx5_{n}" for n in range(8)]
    assert "left out mlx5_8, mlx5_9" in str(found.notes[0])


def test_the_user_names_the_cards_of_the_network() -> None:
    unit = unit_of(DGX, options(nics=("mlx5_9", "mlx5_0")))
    assert [nic.name for nic in unit.nics] == ["mlx5_9", "mlx5_0"]


def test_a_card_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"--nics: the file has no such NIC \(found mlx5_77\)"):
        read(DGX, options(nics=("mlx5_77",)))


CUBE = {
    **dict.fromkeys([(0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (4, 7), (5, 6), (6, 7)], 2),
    **dict.fromkeys([(0, 1), (0, 2), (1, 3), (2, 6), (3, 7), (4, 5), (4, 6), (5, 7)], 1),
}
"""NVLinks of each pair of a hybrid cube mesh; every GPU has six."""


def cube(one: str, other: str) -> str:
    """Return a cell of a DGX-1 with V100: six NVLinks a GPU, two GPUs on a switch with a NIC."""
    numbers = sorted((number(one), number(other)))
    if one.startswith("GPU") and other.startswith("GPU"):
        links = CUBE.get((numbers[0], numbers[1]), 0)
        return f"NV{links}" if links else "SYS"
    gpu, nic = (one, other) if one.startswith("GPU") else (other, one)
    if one.startswith("mlx") and other.startswith("mlx"):
        return "NODE" if numbers[0] // 2 == numbers[1] // 2 else "SYS"
    if number(gpu) // 2 == number(nic) % 50:
        return "PIX"
    return "NODE" if number(gpu) // 4 == number(nic) % 50 // 2 else "SYS"


def test_links_of_a_mesh_lead_from_gpu_to_gpu() -> None:
    text = smi(8, 4, cube, lambda gpu: str(gpu // 4), nic_name="mlx5_{}")
    unit = unit_of(text, options("dgx-a100-80gb", link=25 * GB))
    joined = {
        (one, other): capacity(unit, f"gpu{one}", f"gpu{other}")
        for one in range(8)
        for other in range(one + 1, 8)
    }
    assert joined == {pair: CUBE.get(pair, 0) * 25 * GB for pair in joined}


@pytest.mark.parametrize(
    ("accelerators", "links", "name", "switched"),
    [
        (8, 12, "dgx-a100-80gb", True),
        (4, 4, "dgx-a100-80gb", False),
        (4, 6, "dgx-h100", False),
        (4, 18, "dgx-h100", True),
        (4, 6, "gh200-node", False),
        (8, 18, "dgx-b200", True),
    ],
)
def test_the_rate_of_a_link_tells_a_switch_from_a_mesh(
    accelerators: int, links: int, name: str, *, switched: bool
) -> None:
    unit = unit_of(smi(accelerators, 0, lambda *_: f"NV{links}"), options(name))
    assert (dict(unit.devices).get("nvswitch") is DeviceKind.SWITCH) is switched


def test_a_rate_that_no_generation_has_is_an_error() -> None:
    with pytest.raises(InputError, match=r"neither 16\.67 GB/s a link .* generation of NVLink has"):
        read(DGX, options("dgx-a100-80gb"))


def test_links_without_a_rate_are_an_error_with_the_option() -> None:
    with pytest.raises(InputError, match=r"nothing says how fast one is(.|\n)*--link-bandwidth"):
        read(smi(2, 0, lambda *_: "NV4"), options("l40s-node"))


def test_two_numa_nodes_need_the_way_between_them() -> None:
    with pytest.raises(InputError, match=r"--socket-bandwidth; NCCL takes .*22 GB/s"):
        read(DGX, options(sockets=None))


def test_without_a_profile_the_error_names_the_option() -> None:
    with pytest.raises(InputError, match=r"how fast PCIe is(.|\n)*--profile"):
        read(DGX, options(None))


@st.composite
def slots(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Return socket, upper switch and lower switch of some devices."""
    place = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 2))
    return draw(st.lists(place, min_size=2, max_size=7))


def distance(one: tuple[int, int, int], other: tuple[int, int, int]) -> str:
    """Return how far apart two slots are."""
    if one == other:
        return "PIX"
    if one[:2] == other[:2]:
        return "PXB"
    return "NODE" if one[0] == other[0] else "SYS"


@given(places=slots())
def test_the_tree_has_the_distances_of_the_table(places: list[tuple[int, int, int]]) -> None:
    table = smi(len(places), 0, lambda a, b: distance(places[number(a)], places[number(b)]), str)
    bare = table.replace("NUMA Affinity", "").replace("CPU Affinity", "CPU")
    bare = re.sub(r"\t0-31,64-95\t\d+\t\tN/A", "", bare)
    unit = unit_of(bare, options("l40s-node"))
    for one, here in enumerate(places):
        for other, there in enumerate(places[:one]):
            path = way(unit, f"gpu{one}", f"gpu{other}")
            sockets = sum(name.startswith("socket") for name in path)
            switches = sum(name.startswith("pcie") for name in path)
            expected = {"PIX": 0, "PXB": 0, "NODE": 1, "SYS": 2}[distance(here, there)]
            assert sockets == expected
            assert switches == 1 or distance(here, there) != "PIX"


def test_old_drivers_call_the_way_between_sockets_soc() -> None:
    path = way(unit_of(smi(2, 0, lambda *_: "SOC", str), options("l40s-node")), "gpu0", "gpu1")
    assert path == ["gpu0", "numa0", "numa1", "gpu1"]


def test_a_table_in_a_comment_is_read() -> None:
    text = "".join(f"# {line}\n" for line in DGX.splitlines())
    assert unit_of(text) == unit_of(DGX)


def test_virtual_machines_that_print_sys_everywhere_keep_their_numa_nodes() -> None:
    found = read(smi(4, 0, lambda *_: "SYS", lambda gpu: str(gpu // 2)), options("l40s-node"))
    assert found.unit is not None
    hosts = [name for name, kind in found.unit.devices if kind is DeviceKind.HOST]
    assert (hosts, "yet belong to one NUMA node" in str(found.notes[-1])) == (
        ["numa0", "numa1"],
        True,
    )


def test_numa_nodes_of_grace_are_named_by_their_first() -> None:
    domains = ["0,3-9,11-17", "0,3-9,11-17", "1,19-25", "1,19-25"]
    unit = unit_of(smi(4, 0, lambda *_: "NV18", lambda gpu: domains[gpu]), options("gb200-nvl72"))
    assert [name for name, kind in unit.devices if kind is DeviceKind.HOST] == ["numa0", "numa1"]


def test_every_row_that_cannot_be_read_is_named_with_its_line() -> None:
    lines = smi(3, 0, lambda *_: "PHB", underlined=False).splitlines()
    lines[1] = "GPU0\t X \tPHB"
    lines[2] = "GPU1\tPHX\t X \tPHB\t0-3\t0\t\tN/A"
    with pytest.raises(InputError) as caught:
        read("\n".join(lines))
    assert [(p.key, p.found) for p in caught.value.problems] == [("line 2", ""), ("line 3", "PHX")]


def test_halves_that_contradict_each_other_are_an_error() -> None:
    lines = smi(2, 0, lambda *_: "PHB", underlined=False).splitlines()
    lines[2] = lines[2].replace("PHB", "SYS")
    with pytest.raises(InputError, match="GPU1 to GPU0 is SYS, and GPU0 to GPU1 PHB"):
        read("\n".join(lines))


def test_a_missing_row_is_named() -> None:
    lines = smi(3, 0, lambda *_: "PHB", underlined=False).splitlines()
    with pytest.raises(InputError, match="sample: GPU2: has no row"):
        read("\n".join(lines[:3]))


def test_rows_of_nics_may_be_missing() -> None:
    cut = "\n".join(line for line in DGX.splitlines() if not re.match(r"NIC\d+\t", line))
    assert unit_of(cut).affinity == unit_of(DGX).affinity


def test_a_second_table_is_noted() -> None:
    notes = [str(note) for note in read(DGX + "\n" + DGX).notes]
    assert any("a second table, which is not read" in note for note in notes)


def test_lines_that_are_not_understood_are_noted_with_their_number() -> None:
    notes = [str(note) for note in read(DGX + "\nMIG devices: 7\n").notes]
    assert any(note.endswith("not understood") and note.startswith("line ") for note in notes)
