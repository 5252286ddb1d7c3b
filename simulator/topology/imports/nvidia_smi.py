"""The table of `nvidia-smi topo -m` (or `-mp`), of any driver, as printed or pasted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from simulator.errors import InputError, Problem
from simulator.files import nearest
from simulator.topology.imports.matrix import Distance, Matrix
from simulator.topology.imports.node_tree import unit_of_matrix
from simulator.topology.imports.records import Imported, ImportOptions, Note, at_line

FORMAT = "nvidia-smi topo -m"
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_QUOTED = "#>| \t\r"
"""What stands before a line that was pasted from a comment or a message."""
_ACCELERATOR = re.compile(r"GPU(\d+)")
_LEGEND = re.compile(r"(NIC\d+):\s+(\S+)")
_WORDS_OF_LEGEND = re.compile(r"(Legend:|NIC Legend:|[A-Z#]+\s+=\s.*)")
_LINKS = re.compile(r"NV(\d+)")
_SELF = "X"
_SAME_AS = {"SOC": "SYS", "PSB": "PIX"}
"""Names that older drivers print."""
_AFFINITY = "CPU"
"""First word of the columns behind the matrix: CPU Affinity, NUMA Affinity, GPU NUMA ID."""
_NONE = "N/A"
_SHOWN = 5


def is_nvidia_smi(text: str) -> bool:
    """Return whether a text holds such a table."""
    return any(_header(words) for _, words in _lines(text))


def read_nvidia_smi(text: str, where: str, options: ImportOptions) -> Imported:
    """Return the node that a table describes.

    Raises:
        InputError: with every row that cannot be read, or what a profile or option must say.
    """
    table = _read_table(text, where)
    if table.problems:
        raise InputError(*table.problems)
    matrix = _matrix(table, where)
    unit, notes = unit_of_matrix(matrix, where, options)
    return Imported(where=where, format=FORMAT, unit=unit, notes=(*table.notes, *notes))


@dataclass(slots=True, kw_only=True)
class _Table:
    """A table while it is read."""

    names: tuple[str, ...] = ()
    rows: dict[str, list[str]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    legend: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def _read_table(text: str, where: str) -> _Table:
    table, named = _Table(), frozenset[str]()
    strange = []
    for number, words in _lines(text):
        header = _header(words)
        if header and table.names:
            table.notes.append(Note(line=number, text="a second table, which is not read"))
            break
        if header:
            table.names, named = header, frozenset(header)
        elif words[0] in named:
            _read_row(table, number, words, where)
        elif legend := _LEGEND.fullmatch(" ".join(words)):
            table.legend[legend[1]] = legend[2]
        elif table.names and not _WORDS_OF_LEGEND.fullmatch(" ".join(words)):
            strange.append(number)
    table.notes += [Note(line=line, text="not understood") for line in strange[:_SHOWN]]
    if len(strange) > _SHOWN:
        table.notes.append(Note(text=f"{len(strange) - _SHOWN} more lines not understood"))
    return table


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(_ANSI.sub("", text).splitlines(), 1):
        words = line.lstrip(_QUOTED).split()
        if words:
            yield number, words


def _header(words: list[str]) -> tuple[str, ...]:
    """Return the devices that a header names, in order; nothing where a line is none."""
    names = words[: words.index(_AFFINITY)] if _AFFINITY in words else words
    is_header = bool(names) and _ACCELERATOR.fullmatch(names[0]) is not None
    differ = len(set(names)) == len(names)
    return tuple(names) if is_header and differ and not any(map(_is_cell, names)) else ()


def _is_cell(word: str) -> bool:
    word = _SAME_AS.get(word, word)
    return word == _SELF or word in Distance.__members__ or _LINKS.fullmatch(word) is not None


def _read_row(table: _Table, number: int, words: list[str], where: str) -> None:
    name, cells = words[0], words[1 : 1 + len(table.names)]
    strange = [cell for cell in cells if not _is_cell(cell)]
    if name in table.rows:
        table.problems.append(at_line(where, number, f"{name} has a row already"))
    elif strange:
        known = [_SELF, *Distance.__members__, "NV1"]
        rule = f"a cell must be {_SELF}, NV and a number, or {', '.join(Distance.__members__)}"
        fix = nearest(strange[0], known)
        table.problems.append(at_line(where, number, rule, found=strange[0][:40], fix=fix))
    elif len(cells) < len(table.names):
        rule = f"has {len(cells)} cells where the header names {len(table.names)} devices"
        fix = "the whole output of nvidia-smi topo -m, with no line wrapped or cut"
        table.problems.append(at_line(where, number, rule, fix=fix))
    else:
        table.rows[name] = cells
        table.lines[name] = number
        behind = words[1 + len(table.names) :]
        if len(behind) > 1 and behind[1] != _NONE:
            table.domains[name] = behind[1]


def _matrix(table: _Table, where: str) -> Matrix:
    """Return the matrix of a table whose rows are sound.

    Raises:
        InputError: an accelerator has no row, or two halves of the table contradict each other.
    """
    names = sorted(table.names, key=lambda name: _ACCELERATOR.fullmatch(name) is None)
    place = {name: number for number, name in enumerate(names)}
    accelerators = sum(_ACCELERATOR.fullmatch(name) is not None for name in names)
    missing = [name for name in names[:accelerators] if name not in table.rows]
    problems = [Problem(where=where, key=name, rule="has no row") for name in missing]
    cells: dict[tuple[int, int], str] = {}
    for one, name in enumerate(names):
        for column, cell in zip(table.names, table.rows.get(name, ()), strict=False):
            other = place[column]
            pair = (min(one, other), max(one, other))
            if (cell == _SELF) != (one == other) or cells.setdefault(pair, cell) != cell:
                rule = f"{name} to {column} is {cell}, and {column} to {name} {cells.get(pair)}"
                problems.append(at_line(where, table.lines[name], rule))
    if problems:
        raise InputError(*problems)
    known = {pair: _SAME_AS.get(cell, cell) for pair, cell in cells.items() if cell != _SELF}
    links = {pair: _LINKS.fullmatch(cell) for pair, cell in known.items()}
    return Matrix(
        names=tuple(table.legend.get(name, name.lower()) for name in names),
        accelerators=accelerators,
        distances={pair: Distance[cell] for pair, cell in known.items() if not links[pair]},
        links={pair: int(match[1]) for pair, match in links.items() if match},
        domains={place[name]: domain for name, domain in table.domains.items()},
    )
