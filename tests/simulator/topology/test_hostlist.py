"""Slurm's host lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.topology.hostlist import MAX_NAMES, expand_hostlist


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node1", ["node1"]),
        ("node[001-003,20]", ["node001", "node002", "node003", "node20"]),
        ("a[1-2],b,c[09-10]", ["a1", "a2", "b", "c09", "c10"]),
        ("r[1-2]n[1-2]-ib", ["r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib"]),
        ("ip-10-1-[1,3]-5", ["ip-10-1-1-5", "ip-10-1-3-5"]),
        ("n[0-8/4]", ["n0", "n4", "n8"]),
    ],
)
def test_an_expression_stands_for_names(text: str, names: list[str]) -> None:
    assert expand_hostlist(text) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node[1-", "close each bracket"),
        ("node[[1]]", "brackets inside brackets"),
        ("node[a-b]", "must be a number or a range"),
        ("node[5-1]", "lower number to a higher"),
        ("node[0-999999999]", f"at most {MAX_NAMES} names"),
        ("a[1-999]b[1-999]c[1-999]", f"at most {MAX_NAMES} names"),
        ("a,,b", "with commas between them"),
        ("a b", "must not hold ' '"),
    ],
)
def test_what_is_no_host_list_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        expand_hostlist(text)


@given(numbers=st.lists(st.integers(0, 9999), min_size=1, max_size=30))
def test_a_list_of_numbers_comes_back(numbers: list[int]) -> None:
    assert expand_hostlist(f"n[{','.join(map(str, numbers))}]") == [f"n{n}" for n in numbers]


@given(text=st.text(alphabet="n[]0123456789-,/ ", max_size=20))
def test_any_text_is_names_or_an_error(text: str) -> None:
    try:
        found = expand_hostlist(text)
    except ValueError as error:
        found = [str(error)]
    assert all(found)
