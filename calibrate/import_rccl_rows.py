"""CSV and JSON that rccl-tests writes (`-x`, `-Z`), as runs of samples."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from calibrate.import_json import ArrayStream
from calibrate.import_samples import Facts, Printed, Run, Sample, printed, printed_size
from calibrate.import_words import OTHER_COLLECTIVES, collective_of, plain, wire_dtype
from simulator.units import GB, US

_MPI = ("numcycle", "collective", "nodes", "ranks", "rankspernode", "gpusperrank")
_ALONE = ("numcycle", "collective", "gpus")
_RESULT = ("size", "type", "redop", "inplace", "time", "algbw", "busbw")
_WORDS = frozenset(("collective", "type", "redop"))
_ENDS = (("wrong",), ("busbwfactor", "wrong"), ())
_LAYOUTS = tuple(
    (*begin, *_RESULT, *end)
    for begin in (_MPI, tuple(name for name in _MPI if name != "nodes"), _ALONE)
    for end in _ENDS
)
"""Columns that rccl-tests writes by version; its header has left out `nodes` for a while."""
NEEDED = frozenset(("collective", "size", "time", "inplace"))
"""Columns that only tables of rccl-tests have together."""


def canonical(header: Sequence[str]) -> tuple[str, ...]:
    """Return column names in lower case without other characters."""
    return tuple(re.sub(r"[^a-z]", "", name.lower()) for name in header)


def runs_of_rows(
    header: Sequence[str], rows: Iterable[tuple[int, Sequence[str]]]
) -> tuple[Run, ...]:
    """Return the runs of a CSV file of rccl-tests; rows are cells with their line."""
    notes: list[tuple[int, str]] = []
    found: dict[Facts, list[Sample]] = {}
    for line, cells in rows:
        names = _layout(header, cells)
        if names is None:
            notes.append((line, f"left out: {len(cells)} cells do not fit the header"))
            continue
        if names != tuple(header):
            notes.append((line, "the header misses columns: read as " + ", ".join(names)))
        _collect(dict(zip(names, cells, strict=True)), line, found, notes)
    return _joined(found, notes)


def runs_of_entries(text: str) -> tuple[Run, ...] | None:
    """Return the runs of the JSON of rccl-tests, a list of rows; None where it is no such list."""
    stream = ArrayStream(io.StringIO(text), "results", digits=True)
    entries = [
        {re.sub(r"[^a-z]", "", str(key).lower()): str(value) for key, value in entry.items()}
        for entry in stream
    ]
    if not entries or not set(entries[0]) >= {"size", "time", "inplace"}:
        return None
    notes = [(0, "the file is cut off: its last results are lost")] if stream.cut else []
    found: dict[Facts, list[Sample]] = {}
    for place, entry in enumerate(entries, start=1):
        named = {"collective": entry.get("name", entry.get("collective", "")), **entry}
        _collect(named, place, found, notes)
    return _joined(found, notes)


def _layout(header: Sequence[str], cells: Sequence[str]) -> tuple[str, ...] | None:
    """Return the columns of a row: the header's, or those of a version that the cells fit."""
    for names in (tuple(header), *_LAYOUTS):
        if len(names) == len(cells) and all(map(_fits, names, cells)):
            return names
    return None


def _fits(name: str, cell: str) -> bool:
    number = printed(cell.strip()) is not None
    if name in _WORDS:
        return not number
    return number or name in ("wrong", "inplace", "busbwfactor") or cell.strip().lower() == "n/a"


def _collect(
    row: Mapping[str, str],
    line: int,
    found: dict[Facts, list[Sample]],
    notes: list[tuple[int, str]],
) -> None:
    """Add the sample of one row to those of its run."""
    time, size = printed(row.get("time", "")), printed_size(row.get("size", ""))
    if time is None or size is None:
        notes.append((line, "left out: no time or no size"))
        return
    if size == 0:
        return
    dtype = wire_dtype(row.get("type", ""))
    wrong = printed(row.get("wrong", ""))
    sample = Sample(
        line=line,
        bytes=size,
        time=time.times(US),
        in_place=row.get("inplace", "").strip().lower() in ("1", "true", "yes"),
        dtype=dtype[0] if dtype else row.get("type", "").strip(),
        redop=row.get("redop", "").strip().lower(),
        algbw=_rate(row.get("algbw", "")),
        busbw=_rate(row.get("busbw", "")),
        wrong=None if wrong is None else wrong.value,
    )
    found.setdefault(_row_facts(row), []).append(sample)


def _row_facts(row: Mapping[str, str]) -> Facts:
    word = row.get("collective", "")
    ranks, gpus = _count(row, "ranks"), _count(row, "gpus")
    each, nodes = _count(row, "rankspernode"), _count(row, "nodes")
    driven = _count(row, "gpusperrank") or 1
    if gpus is not None:
        ranks, nodes, driven = gpus, 1, 1
    if nodes is None and ranks and each:
        nodes = max(1, -(-ranks // each))
    return Facts(
        collective=collective_of(word),
        other=word if plain(word) in OTHER_COLLECTIVES else "",
        ranks=ranks * driven if ranks else None,
        nodes=nodes,
    )


def _count(row: Mapping[str, str], name: str) -> int | None:
    number = printed(row.get(name, "").strip())
    whole = number is not None and number.value >= 1 and number.value == int(number.value)
    return int(number.value) if number is not None and whole else None


def _joined(
    found: Mapping[Facts, Sequence[Sample]], notes: Sequence[tuple[int, str]]
) -> tuple[Run, ...]:
    runs = [Run(facts=facts, samples=tuple(samples)) for facts, samples in found.items()]
    if not runs:
        return (Run(facts=Facts(), samples=(), notes=tuple(notes)),)
    return (replace(runs[0], notes=tuple(dict.fromkeys(notes))), *runs[1:])


def _rate(text: str) -> Printed | None:
    number = printed(text.strip())
    return None if number is None else number.times(GB)
