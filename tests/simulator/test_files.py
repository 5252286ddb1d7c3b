"""User files: all errors at once, with the fix; written whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError, Problem
from simulator.files import (
    MAX_FILE_BYTES,
    FileRecord,
    nearest,
    parse_record,
    read_json,
    read_record,
    read_text,
    read_toml,
    write_atomic,
    write_together,
)


class Wheel(FileRecord):
    diameter: int
    spokes: int = 36


class Bike(FileRecord):
    name: str
    front: Wheel
    rear: Wheel | None = None
    gears: tuple[int, ...] = ()


GOOD = 'name = "fast"\ngears = [11, 12]\n[front]\ndiameter = 622\n'


def problems_of(text: str, tmp_path: Path) -> list[Problem]:
    path = tmp_path / "bike.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_record(Bike, path)
    assert {problem.where for problem in caught.value.problems} == {str(path)}
    return list(caught.value.problems)


def problems_in(read: Callable[[], object]) -> tuple[Problem, ...]:
    """Return why `read` refuses its input; nothing where it does not."""
    try:
        read()
    except InputError as error:
        return error.problems
    return ()


def test_a_good_file_becomes_its_record(tmp_path: Path) -> None:
    path = tmp_path / "bike.toml"
    path.write_text(GOOD)
    assert read_record(Bike, path) == Bike(name="fast", front=Wheel(diameter=622), gears=(11, 12))


def test_all_errors_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    text = 'gears = ["x"]\nbell = true\n[front]\ndiameter = "big"\n[rear]\n'
    assert [(p.key, p.rule) for p in problems_of(text, tmp_path)] == [
        ("name", "this key is required"),
        ("front.diameter", "input should be a valid integer"),
        ("rear.diameter", "this key is required"),
        ("gears.0", "input should be a valid integer"),
        ("bell", "unknown key"),
    ]


@pytest.mark.parametrize(
    ("line", "key", "fix"),
    [
        ("nam = 1", "nam", "did you mean 'name'?"),
        ("[rear]\ndiameter = 1\nspoke = 1", "rear.spoke", "did you mean 'spokes'?"),
        ("bell = true", "bell", "one of: front, gears, name, rear"),
    ],
)
def test_an_unknown_key_gets_the_nearest_known_one(
    line: str, key: str, fix: str, tmp_path: Path
) -> None:
    text = f'name = "a"\nfront = {{diameter = 1}}\n{line}'
    assert problems_of(text, tmp_path) == [
        Problem(where=str(tmp_path / "bike.toml"), key=key, rule="unknown key", fix=fix)
    ]


def test_long_values_are_shown_shortened(tmp_path: Path) -> None:
    (problem,) = problems_of(f'name = "a"\nfront = "{"x" * 500}"', tmp_path)
    assert problem.found == "'" + "x" * 59 + "..."


def test_numbers_are_not_converted(tmp_path: Path) -> None:
    keys = [p.key for p in problems_of('name = 1\n[front]\ndiameter = "622"', tmp_path)]
    assert keys == ["name", "front.diameter"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: no such file"):
        read_text(tmp_path / "none.toml")


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a regular file"):
        read_text(tmp_path)


def test_a_device_is_no_file() -> None:
    with pytest.raises(InputError, match="must be a regular file"):
        read_text(os.devnull)


def test_a_path_with_a_null_byte_is_refused() -> None:
    with pytest.raises(InputError, match="null"):
        read_text("a\0b")


@pytest.mark.parametrize(
    ("content", "rule"),
    [(b"\xff\xfe\x00", "must be UTF-8 text"), (b"a = 1\0", "must be a text file")],
)
def test_binary_content_is_refused(content: bytes, rule: str, tmp_path: Path) -> None:
    path = tmp_path / "image.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rule):
        read_toml(path)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "bom.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1")
    assert read_toml(path) == {"a": 1}


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.toml"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(InputError, match=f"at most {MAX_FILE_BYTES} bytes"):
        read_text(path)


@pytest.mark.parametrize("text", ["a = ", "a = 1\na = 2", "[" * 5000, "a = [" * 5000])
def test_bad_toml_is_an_input_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InputError, match="is not valid TOML"):
        read_toml(path)


@pytest.mark.parametrize("text", ["{", "", "[" * 100_000, '{"a": 1' + "0" * 5000 + "}"])
def test_bad_json_is_an_input_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(InputError, match="is not valid JSON"):
        read_json(path)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_an_input_error(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bytes.toml"
        path.write_bytes(content)
        refused = problems_in(lambda: read_toml(path))
        assert {problem.where for problem in refused} <= {str(path)}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(("name", "front", "rear", "gears", "bell")), JSON_VALUES))
def test_any_table_is_read_or_refused_with_an_input_error(data: dict[str, object]) -> None:
    refused = problems_in(lambda: parse_record(Bike, data, "bike.toml"))
    assert all(problem.rule for problem in refused)


def test_written_text_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    write_atomic(path, "one\ntwo äö\n")
    assert read_text(path) == "one\ntwo äö\n"


def test_a_written_file_replaces_the_old_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    for text in ("old", "new"):
        write_atomic(path, text)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"out.txt": "new"}


def test_a_reader_never_sees_a_part_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    texts = ["a" * 200_000, "b" * 300_000]
    write_atomic(path, texts[0])
    seen = set()

    def write() -> None:
        for i in range(20):
            write_atomic(path, texts[i % 2])

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        seen.add(path.read_text())
    writer.join()
    assert seen <= set(texts)


def test_a_failing_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(InputError, match=r"holds '.ud800', which is no character of UTF-8"):
        write_atomic(path, "half\ud800")
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"out.txt": "old"}


@pytest.mark.parametrize("wrong", ["missing/out.txt", "taken", "\0", "x" * 300])
def test_files_are_written_together_or_not_at_all(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "taken").mkdir()
    files = {tmp_path / "old.txt": "new", tmp_path / "new.bin": b"\0", tmp_path / wrong: "text"}
    with pytest.raises(InputError, match="cannot be written"):
        write_together(files)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["old.txt", "taken"]
    assert (tmp_path / "old.txt").read_text() == "old"


def test_a_name_as_long_as_a_file_may_have_is_written(tmp_path: Path) -> None:
    write_together({tmp_path / ("x" * 255): "text", tmp_path / "other": b"bytes"})
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {
        "x" * 255: "text",
        "other": "bytes",
    }


def test_a_missing_file_is_answered_with_the_name_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "llama3-70b.toml").write_text("")
    with pytest.raises(InputError, match=r"fix: did you mean .*llama3-70b"):
        read_text(tmp_path / "lama3-70b.toml")
    with pytest.raises(InputError) as caught:
        read_text(tmp_path / "zzz")
    assert [problem.fix for problem in caught.value.problems] == [""]


@pytest.mark.parametrize("name", ["missing/out.txt", "taken"])
def test_where_nothing_can_be_written_is_an_input_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_atomic(tmp_path / name, "text")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize(
    ("word", "hint"), [("colour", "did you mean 'color'?"), ("xyz", "one of: color, shape")]
)
def test_hints_name_the_nearest_word_or_all_words(word: str, hint: str) -> None:
    assert nearest(word, ["shape", "color"]) == hint
