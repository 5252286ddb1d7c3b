"""The rows of the tables that nccl-tests and rccl-tests print."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from calibrate.import_nccl_columns import Column, Columns
from calibrate.import_samples import Printed, Sample, printed, printed_size
from calibrate.import_words import wire_dtype
from simulator.units import GB, US

_TEXT = (Column.TYPE, Column.REDOP)
_GAP = re.compile(r"\S\s{24,}\S")
"""Wider than any gap between two columns: a whole block of them is blank."""
_NO_NUMBERS = ("n/a", "na", "nan", "inf", "")
_FEW = 3
"""Numbers that what is left of a row has at least where its size is lost."""


def samples_of(columns: Columns, text: str, line: int) -> tuple[Sample, ...] | str:
    """Return the samples of a row, or why it is none, in words."""
    words = text.replace("|", " ").split()
    words = words[: len(words) - columns.trailing] if _stamped(columns, words) else words
    blocks, places = columns.blocks, columns.places
    whole = len(columns.left) + columns.width - len(blocks[0])
    if len(blocks) > 1 and len(words) <= whole and _GAP.search(text):
        blocks, places = blocks[1:], places[1:]
    width = sum(map(len, blocks))
    common = _common(columns.left, words[: len(words) - width]) if len(words) > width else None
    if common is None or not all(map(_is_result, words[len(words) - width :])):
        whole = columns.width + len(columns.left)
        return f"has {len(words)} cells that do not fit the {whole} of the header"
    found, start = [], len(words) - width
    for block, place in zip(blocks, places, strict=True):
        cells = dict(zip(block, words[start : start + len(block)], strict=True))
        start += len(block)
        sample = _sample(common, cells, columns, line)
        if sample is not None:
            found.append(replace(sample, in_place=place))
    return tuple(found)


def is_row(text: str) -> bool:
    """Return whether a line looks like a row of a table: two numbers at its beginning."""
    words = text.replace("|", " ").split()
    return (
        len(words) > 1
        and not words[0].endswith((".", ")", ":"))
        and printed_size(words[0]) is not None
        and any(printed(word) is not None for word in words[1:3])
    )


def is_broken_row(text: str) -> bool:
    """Return whether a line that is no row looks like what is left of one: mostly numbers."""
    words = text.replace("|", " ").split()
    numbers = sum(printed(word) is not None for word in words)
    few = 1 if words and printed_size(words[0]) is not None else _FEW
    spoken = text.lstrip().startswith("#") or (few > 1 and "NCCL" in words)
    return not spoken and numbers >= few and 2 * numbers >= len(words)


def _is_result(word: str) -> bool:
    return printed(word.rstrip("*")) is not None or word.lower().lstrip("-+") in _NO_NUMBERS


def _stamped(columns: Columns, words: Sequence[str]) -> bool:
    return columns.trailing > 0 and bool(words) and words[-1].count(":") > 1


def _common(left: Sequence[Column], words: Sequence[str]) -> dict[Column, str] | None:
    """Return the cells left of the results; columns that a row leaves blank are skipped."""
    cells: dict[Column, str] = {}
    rest = list(words)
    for column in left:
        if rest and (printed_size(rest[0]) is None) == _holds_text(column, rest[0]):
            cells[column] = rest.pop(0)
    missing = {Column.SIZE, Column.TYPE}.intersection(left) - set(cells)
    return cells if not rest and not missing else None


def _holds_text(column: Column, word: str) -> bool:
    """Return whether a column wants text; -1 is a root."""
    return column in _TEXT or (column is Column.ROOT and word.startswith("-"))


def _sample(
    common: dict[Column, str], cells: dict[Column, str], columns: Columns, line: int
) -> Sample | None:
    """Return one block of a row, its place not set; None where it has no time ("N/A")."""
    time, size = printed(cells[Column.TIME]), printed_size(common[Column.SIZE])
    if time is None or size is None:
        return None
    dtype = wire_dtype(common.get(Column.TYPE, ""))
    root, count = printed(common.get(Column.ROOT, "")), printed(common.get(Column.COUNT, ""))
    return Sample(
        line=line,
        bytes=size,
        time=time.times(columns.unit or US),
        count=None if count is None else count.value,
        dtype=dtype[0] if dtype else common.get(Column.TYPE, ""),
        redop=common.get(Column.REDOP, "").lower(),
        root=None if root is None else int(root.value),
        algbw=_rate(cells.get(Column.ALGBW, "")),
        busbw=_rate(cells.get(Column.BUSBW, "")),
        wrong=_wrong(cells),
    )


def _rate(text: str) -> Printed | None:
    number = printed(text)
    return None if number is None else number.times(GB)


def _wrong(cells: dict[Column, str]) -> float | None:
    """Return how many elements were wrong; at least one where a difference is marked."""
    if cells.get(Column.ERROR, "").endswith("*"):
        return 1.0
    number = printed(cells.get(Column.WRONG, ""))
    return None if number is None else number.value
