import os
from pathlib import Path

import pytest

from calibrate.validation.rows import Kind, read_table
from simulator.errors import InputError
from tests.calibrate.validation.tables import STEP, write_table


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("gpu,op,dtype,gpus,nodes,bytes,time_us", Kind.COLLECTIVES),
        ("gpu,op,gpus,bytes,time_us", Kind.COLLECTIVES),
        ("dtype,m,n,k,time_us", Kind.GEMMS),
        ("b,m,n,k,layout,t,gpu", Kind.GEMMS),
        ("batch_size,seq_len,num_heads,num_key_value_heads,head_dim,time_us", Kind.ATTENTION),
        ("hardware,gpus,layers,hidden", Kind.STEPS),
    ],
)
def test_the_kind_is_read_from_the_header(tmp_path: Path, header: str, kind: Kind) -> None:
    path = tmp_path / "table.csv"
    path.write_text(header + "\n")
    assert read_table(path).kind is kind


def test_cells_are_read_as_text_and_blank_lines_left_out(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("dtype,m,n,k,time_us\n\nbf16,1.0,2,3,4\n,,,,\n")
    (row,) = read_table(path).rows
    assert row.cells == {"dtype": "bf16", "m": "1.0", "n": "2", "k": "3", "time_us": "4"}


def test_a_row_of_another_length_is_kept_with_its_problem(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("dtype,m,n,k,time_us\nbf16,1,2,3\nbf16,1,2,3,4,5\n")
    assert [row.problem for row in read_table(path).rows] == [
        "the row has 4 cells, the header 5",
        "the row has 6 cells, the header 5",
    ]


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("\ufeffdtype,m,n,k,time_us\n", encoding="utf-8")
    assert read_table(path).kind is Kind.GEMMS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must have a header"),
        (b"a,b,c\n1,2,3\n", "not a table of a known kind"),
        (b"m,n,k,time_us,m\n", "may stand in the header once (found m)"),
        (b"\x00\x01\x02", "must be a text file"),
        (b"\xff\xfe\xff", "must be UTF-8 text"),
        (b"m,n,k,time_us\n" + b"1" * 200_000 + b",1,1,1\n", "is not valid CSV"),
        (b"x" * (33 * 2**20), "must be at most 33554432 bytes"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_table(path)
    assert message in str(caught.value)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.csv"):
        with pytest.raises(InputError):
            read_table(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path / "table.csv", [STEP])
    path.chmod(0)
    with pytest.raises(InputError):
        read_table(path)
