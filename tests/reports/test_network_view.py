"""What the screen shows of a network, however narrow it is and however long names are."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from reports.network_view import print_network, shortened

LONG = "hall-of-the-west-wing/node12345/nic7 -> hall-of-the-west-wing/leaf12"


def network(name: str) -> dict[str, Any]:
    """Return the record of nine kinds of links, two causes and two steps."""
    link = {
        "name": name,
        "alike": 12_345,
        "capacity_bytes_per_second": 47.5e9,
        "carried_bytes": 1234.5e9,
        "utilisation": 0.5,
        "full_share": 0.25,
    }
    causes = [
        {"what": f"{name} and 12,344 alike", "seconds": 0.5},
        {"what": "jitter", "seconds": 1},
    ]
    notes = ["data-parallel replicas differ: 2 kinds of them were played apart"]
    return {"links": [link] * 9, "causes": causes, "drawn_s": [9.0, 11.0], "notes": notes}


def shown(width: int, name: str = "node0/nic0 -> leaf0") -> str:
    """Return what is printed of a network at a width."""
    out = io.StringIO()
    print_network(Console(file=out, width=width, markup=False, highlight=False), network(name), 10)
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", ["node0/nic0 -> leaf0", LONG, "節点/網卡 -> 葉" * 5])
def test_no_line_is_wider_than_the_screen(name: str, width: int) -> None:
    assert max(map(cell_len, shown(width, name).splitlines())) <= width


def test_a_wide_screen_shows_names_whole_and_every_figure() -> None:
    lines = shown(120, LONG).splitlines()
    row = f"{LONG}  12,345  47.50      1,234  50.0 %  25.0 %"
    assert [line.rstrip() for line in lines].count(row) == 8


def test_a_narrow_screen_says_what_it_leaves_out() -> None:
    assert "left out at 60 characters: GB a step" in shown(60).replace("\n", " ")


def test_the_rest_of_the_links_is_counted() -> None:
    assert "and 1 kind of links more" in shown(120)


def test_replicas_that_were_played_apart_are_told_of() -> None:
    assert "2 kinds of them were played apart" in shown(120)


def test_a_short_end_of_a_link_leaves_its_room_to_the_other() -> None:
    assert shortened("a -> rack12/leaf1-of-the-far-hall", 24) == "a -> rack12…the-far-hall"


@given(st.text("abc/0123", max_size=40), st.text("abc/0123", max_size=40), st.integers(24, 60))
def test_a_shortened_link_fits_and_still_has_both_ends(one: str, other: str, width: int) -> None:
    name = f"{one} -> {other}"
    found = shortened(name, width)
    assert cell_len(found) <= width
    assert (found == name) == (cell_len(name) <= width)
    left, _, right = found.partition(" -> ")
    assert (left[-1:], right[-1:]) == (one[-1:], other[-1:])
