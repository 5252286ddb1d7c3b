"""Tables fit the terminal without cutting numbers."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from reports.quantities import number, parameters, plain, seconds
from reports.table import Column, fit_columns, needed_width, print_pairs, print_table

COLUMNS = [
    Column(title="name", cells=["first", "second"], justify="left"),
    Column(title="seconds", cells=["1,234.5", "12.5"]),
    Column(title="tokens/s", cells=["1,000,000", "12"], rank=2),
    Column(title="share", cells=["12.5 %", "7.0 %"], rank=1),
]


def printed(width: int, columns: list[Column]) -> str:
    out = io.StringIO()
    print_table(Console(file=out, width=width, markup=False, highlight=False), columns, "hint")
    return out.getvalue()


def test_a_wide_terminal_shows_every_column_aligned() -> None:
    assert printed(80, COLUMNS).splitlines() == [
        "name    seconds   tokens/s   share",
        "first   1,234.5  1,000,000  12.5 %",
        "second     12.5         12   7.0 %",
    ]


def test_a_narrow_terminal_names_the_columns_that_it_leaves_out() -> None:
    assert printed(24, COLUMNS).splitlines() == [
        "name    seconds   share",
        "first   1,234.5  12.5 %",
        "second     12.5   7.0 %",
        "left out at 24",
        "characters: tokens/s",
        "(hint)",
    ]


@given(width=st.integers(1, 60))
def test_no_number_is_ever_cut(width: int) -> None:
    text = printed(width, COLUMNS)
    kept, _ = fit_columns(COLUMNS, width)
    missing = [cell for column in kept for cell in column.cells if cell not in text]
    assert missing == []


@given(width=st.integers(1, 60))
def test_columns_are_left_out_only_where_they_do_not_fit(width: int) -> None:
    kept, dropped = fit_columns(COLUMNS, width)
    fits = needed_width(kept) <= width
    assert fits or all(column.rank == 0 for column in kept)
    assert len(kept) + len(dropped) == len(COLUMNS)


def test_long_values_wrap_between_words() -> None:
    out = io.StringIO()
    print_pairs(Console(file=out, width=30), [("time", "12.5 seconds of a-long-hyphened word")])
    assert out.getvalue() == "time  12.5 seconds of\n      a-long-hyphened word\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.5, "0.5000"), (999.96, "1,000.0"), (1e20, "1.000e+20"), (1e-9, "1.000e-09")],
)
def test_numbers_have_four_digits(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 s"), (2e-6, "2.000 us"), (90, "90.00 s"), (150, "2.500 min"), (172800, "2.000 days")],
)
def test_durations_have_the_unit_that_is_easy_to_read(value: float, text: str) -> None:
    assert seconds(value) == text


def test_parameters_have_the_unit_of_the_field() -> None:
    assert [parameters(n) for n in (12, 1.5e6, 1.0e12)] == ["12.00", "1.500 M", "1.000 T"]


def test_names_of_users_cannot_control_the_terminal() -> None:
    assert plain("a\x1b[31m\nb") == "a [31m b"


WORDS = st.lists(st.sampled_from(["a", "layout", "12.5", "内存", "流水线", "tp"]), max_size=9)
TABLES = st.integers(1, 3).flatmap(
    lambda rows: st.lists(
        st.builds(
            lambda title, cells, rank, justify: Column(
                title=title, cells=[" ".join(cell) for cell in cells], rank=rank, justify=justify
            ),
            st.sampled_from(["name", "step s", "显存"]),
            st.lists(WORDS, min_size=rows, max_size=rows),
            st.integers(0, 2),
            st.sampled_from(["left", "right"]),
        ),
        min_size=1,
        max_size=4,
    )
)


@given(columns=TABLES, width=st.integers(12, 90))
def test_any_table_fits_any_width_and_every_cell_that_is_kept_is_whole(
    columns: list[Column], width: int
) -> None:
    text = printed(width, columns)
    kept, dropped = fit_columns(columns, width)
    together = "".join(text.split())
    assert [line for line in text.splitlines() if cell_len(line) > max(width, 12)] == []
    words = [word for column in kept for cell in column.cells for word in cell.split()]
    assert [word for word in words if word not in together] == []
    assert not dropped or "".join(", ".join(dropped).split()) in together


def test_a_table_too_wide_for_its_terminal_breaks_words_then_becomes_blocks() -> None:
    table = [
        Column(title="step s", cells=["0.5", "12.0"]),
        Column(title="because", cells=["it is the least of memory", "a tie"], justify="left"),
    ]
    assert printed(24, table).splitlines() == [
        "step s  because",
        "   0.5  it is the least",
        "        of memory",
        "  12.0  a tie",
    ]
    assert printed(20, table).splitlines() == [
        "step s 0.5",
        "  because",
        "    it is the least",
        "    of memory",
        "step s 12.0",
        "  because",
        "    a tie",
    ]


def test_wide_characters_count_two_cells() -> None:
    table = [
        Column(title="模型", cells=["通义千问", "gpt2"], justify="left"),
        Column(title="层", cells=["64", "12"]),
    ]
    assert printed(40, table).splitlines() == ["模型      层", "通义千问  64", "gpt2      12"]


def test_what_a_terminal_cannot_encode_is_escaped_before_columns_are_laid_out() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    names = Column(title="name", cells=["é", "e"], justify="left")
    print_table(Console(file=out, width=40), [names, Column(title="n", cells=["1", "2"])])
    out.flush()
    assert raw.getvalue().decode().splitlines() == ["name  n", "\\xe9  1", "e     2"]
