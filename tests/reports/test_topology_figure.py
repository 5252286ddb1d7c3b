"""The picture of a topology: places, groups, lines and what they carry."""

from __future__ import annotations

import numpy as np
import pytest

from reports.drawing.files import figure_file, figure_suffix
from reports.report_figures.network import topology_diagrams
from reports.topology_figure import MOST, BoxKind, Picture, topology_pictures
from reports.topology_record import topology_record
from simulator.errors import InputError
from tests.simulator.topology.test_facts import NIC, TWO_TIERS, topology

GB = 1e9


def labels(picture: Picture, kind: BoxKind) -> list[str]:
    """Return the names of all boxes of a kind, in order."""
    return [box.label for box in picture.boxes if box.kind is kind]


def test_a_small_cluster_has_a_box_for_each_unit() -> None:
    fabric, _ = topology_pictures(topology(8, TWO_TIERS))
    assert labels(fabric, BoxKind.UNIT) == [f"node{n}" for n in range(8)]


def test_units_of_a_large_cluster_that_share_their_leaves_are_one_box() -> None:
    tiers = {"kind": "fat-tree", "tiers": [{"joins": 32}, {}]}
    fabric, _ = topology_pictures(topology(128, tiers))
    assert labels(fabric, BoxKind.UNIT) == [f"node{n} x 32" for n in (0, 32, 64, 96)]


def test_no_row_has_more_than_the_most_boxes() -> None:
    unit = {"kind": "bare", "accelerators": 4}
    (fabric,) = topology_pictures(topology(256, {"kind": "torus", "shape": [32, 32]}, unit))
    rows = [round(box.y) for box in fabric.boxes]
    counts = {kind: sum(box.count for box in fabric.boxes if box.kind is kind) for kind in BoxKind}
    assert max(rows.count(row) for row in rows) <= MOST
    assert (counts[BoxKind.UNIT], counts[BoxKind.SWITCH]) == (256, 1024)


def test_lines_carry_all_cables_between_their_boxes() -> None:
    fabric, _ = topology_pictures(topology(8, TWO_TIERS))
    names = [box.label for box in fabric.boxes]
    up = {
        (names[line.one], names[line.other]): (line.cables, round(line.capacity / NIC, 9))
        for line in fabric.lines
        if names[line.one].startswith("node")
    }
    assert up == {(f"node{n}", f"leaf{n // 4}"): (4, 4.0) for n in range(8)}


def test_a_line_has_the_utilisation_of_its_fullest_link() -> None:
    cluster = topology(8, TWO_TIERS)
    used = np.zeros(cluster.links)
    used[cluster.first_up + 5] = 0.75
    fabric, unit = topology_pictures(cluster, used)
    names = [box.label for box in fabric.boxes]
    full = [(names[line.one], line.utilisation) for line in fabric.lines if line.utilisation]
    assert (full, {line.utilisation for line in unit.lines}) == ([("node1", 0.75)], {0.0})


def test_a_line_whose_links_are_not_counted_has_no_utilisation() -> None:
    cluster = topology(8, TWO_TIERS)
    used = np.zeros(cluster.links)
    used[: cluster.first_up] = np.nan
    used[0] = 0.5
    _, unit = topology_pictures(cluster, used)
    shown = [line.utilisation for line in unit.lines]
    assert (shown.count(0.5), shown.count(None)) == (1, len(shown) - 1)


def test_the_caption_names_the_fullest_link() -> None:
    cluster = topology(8, TWO_TIERS)
    used = np.zeros(cluster.links)
    used[cluster.first_up + 5] = 0.75
    (fabric, *_) = topology_diagrams(cluster, used)
    link = cluster.link_name(cluster.first_up + 5)
    assert fabric.caption.endswith(f"The fullest of all links: {link}, 75.0 %.")
    assert any(cable.label.endswith(", 75.0 %") for cable in fabric.cables)


def test_without_utilisation_none_is_shown() -> None:
    assert {line.utilisation for line in topology_pictures(topology(1, None))[0].lines} == {None}


def test_a_unit_stands_with_its_nics_below_and_its_switch_above() -> None:
    (unit,) = topology_pictures(topology(1, None))
    rows = {kind: {box.y for box in unit.boxes if box.kind is kind} for kind in BoxKind}
    nic, gpu, switch = (rows[k] for k in (BoxKind.NIC, BoxKind.ACCELERATOR, BoxKind.SWITCH))
    assert max(nic) < min(gpu) < min(switch)


def test_boxes_of_a_picture_stand_apart() -> None:
    for picture in topology_pictures(topology(8, TWO_TIERS)):
        places = {(round(box.x, 6), round(box.y, 6)) for box in picture.boxes}
        assert len(places) == len(picture.boxes)


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_same_topology_gives_the_same_file(suffix: str) -> None:
    first, second = (
        figure_file(topology_diagrams(topology(2, {"kind": "flat"})), f"network.{suffix}")
        for _ in range(2)
    )
    assert (first == second, len(first) > 1000) == (True, True)


def test_another_format_is_an_error() -> None:
    with pytest.raises(InputError, match=r"must end with .png or .svg(.|\n)*fix: net.svg"):
        figure_suffix("net.jpeg")


def test_the_links_of_a_route_are_in_the_order_of_the_way() -> None:
    (route,) = topology_record(topology(8, TWO_TIERS), [(0, 29)])["routes"]
    links = [entry["link"] for entry in route["links"]]
    assert (links[0].split(" -> ")[0], links[-1].split(" -> ")[1]) == ("node0/gpu0", "node7/gpu1")
    reached = {"node0/gpu0"}
    for link in links:
        source, target = link.split(" -> ")
        assert source in reached
        reached.add(target)


def test_a_pair_that_is_not_there_is_an_error() -> None:
    with pytest.raises(
        InputError, match=r"--pair: accelerators are numbered 0 to 31 \(found 3 32\)"
    ):
        topology_record(topology(8, TWO_TIERS), [(0, 1), (3, 32)])
