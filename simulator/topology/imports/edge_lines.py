"""The lines of an edge list: two names, a bandwidth, and perhaps a latency."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from simulator.errors import InputError, Problem
from simulator.topology.imports.records import at_line
from simulator.units import Dimension, parse_quantity

_COMMENT = re.compile(r"(^|\s)(#|//).*$")
_DELIMITERS = (",", ";", "\t")
_PAIR = re.compile(r"(\S+)\s+(?:(?:--|->|<->|-|=)\s+)?(\S+)(.*)")
"""Two names, an arrow between them or not, and the rest of the line."""
_TITLES = {
    "from": ("from", "source", "src", "one", "a", "u", "device1", "node1"),
    "to": ("to", "target", "dst", "dest", "destination", "other", "b", "v", "device2", "node2"),
    "bandwidth": ("bandwidth", "bw", "rate", "speed", "capacity"),
    "latency": ("latency", "delay"),
}
_TITLE = re.compile(r"([A-Za-z]+\d?)\s*(?:[_(\[ ]\s*([A-Za-z]+(?:/[A-Za-z]+)?)\s*[)\]]?)?")
_SPELT = {"gbps": "Gbps", "mbps": "Mbps", "tbps": "Tbps"}
"""Units of headers in small letters, which mean bits."""
_WORD = re.compile(r"[\d.]+(?:[eE][+-]?\d+)?\s*[A-Za-z]+(?:/[A-Za-z]+)?(?!\S)|\S+")
"""A number with its unit, or whatever stands between blanks."""
_NUMBER = re.compile(r"[\d.]+(?:[eE][+-]?\d+)?")
_EXAMPLE = "gpu0 nvswitch 450 GB/s 1 us"
_FEWEST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A line: two devices, bytes/s in one direction, seconds."""

    one: str
    other: str
    bandwidth: float
    latency: float
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Which column is what, and the units that the header gives to bare numbers."""

    place: dict[str, int] = field(
        default_factory=lambda: {"from": 0, "to": 1, "bandwidth": 2, "latency": 3}
    )
    unit: dict[str, str] = field(default_factory=dict)


def read_edges(text: str, where: str) -> list[Edge]:
    """Return the edges of a list, in order.

    Columns are set apart by commas, semicolons, tabs or blanks; a header may name them in any
    order, with a unit for bare numbers: `bandwidth_gbps`, `latency (us)`.

    Raises:
        InputError: with every line that cannot be read.
    """
    columns, problems = _Columns(), list[Problem]()
    edges = []
    for place, (number, words) in enumerate(_rows(text)):
        if place == 0 and (header := _header(words)) is not None:
            columns = header
            continue
        edge = _edge(number, words, columns, where)
        if isinstance(edge, Problem):
            problems.append(edge)
        else:
            edges.append(edge)
    if not edges and not problems:
        problems.append(Problem(where=where, rule="has no edge", fix=_EXAMPLE))
    if problems:
        raise InputError(*problems)
    return edges


def is_edge_list(text: str) -> bool:
    """Return whether the first line of a text with any content is an edge, or a header of them."""
    for _, words in _rows(text):
        if _header(words) is not None:
            return True
        return len(words) >= _FEWEST and words[2][:1].isdigit()
    return False


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        bare = _COMMENT.sub("", line).strip()
        if not bare:
            continue
        delimiter = next((sign for sign in _DELIMITERS if sign in bare), None)
        if delimiter is not None:
            yield number, [word.strip().strip("\"'") for word in bare.split(delimiter)]
            continue
        match = _PAIR.fullmatch(bare)
        yield number, [match[1], match[2], *_WORD.findall(match[3])] if match else bare.split()


def _header(words: list[str]) -> _Columns | None:
    """Return the columns that a header names, or None where a line is an edge."""
    place: dict[str, int] = {}
    unit: dict[str, str] = {}
    for number, word in enumerate(words):
        match = _TITLE.fullmatch(word)
        if match is None:
            continue
        for column, names in _TITLES.items():
            if match[1].lower() in names:
                place.setdefault(column, number)
                if match[2]:
                    unit[column] = _SPELT.get(match[2].lower(), match[2])
    return _Columns(place=place, unit=unit) if {"from", "to", "bandwidth"} <= set(place) else None


def _edge(number: int, words: list[str], columns: _Columns, where: str) -> Edge | Problem:
    """Return the edge of a line, or what is wrong with it."""
    needed = max(columns.place[name] for name in ("from", "to", "bandwidth"))
    if len(words) <= needed:
        rule = f"must have {max(needed + 1, _FEWEST)} columns: from, to, bandwidth, and a latency"
        return at_line(where, number, rule, found=" ".join(words)[:60], fix=_EXAMPLE)
    one, other = words[columns.place["from"]], words[columns.place["to"]]
    if not one or not other or one == other:
        return at_line(where, number, "must name two devices", found=f"{one} {other}"[:60])
    try:
        bandwidth = _value(words, "bandwidth", columns, Dimension.BANDWIDTH)
        latency = _value(words, "latency", columns, Dimension.TIME)
    except ValueError as error:
        return at_line(where, number, str(error), found=" ".join(words[2:])[:60], fix=_EXAMPLE)
    if bandwidth <= 0 or latency < 0:
        return at_line(where, number, "bandwidth must be greater than 0, latency at least 0")
    return Edge(one=one, other=other, bandwidth=bandwidth, latency=latency, line=number)


def _value(words: list[str], column: str, columns: _Columns, dimension: Dimension) -> float:
    """Return a quantity of a line in inside units; a latency that is left out is 0.

    Raises:
        ValueError: it is none, or has no unit.
    """
    place = columns.place.get(column)
    text = words[place] if place is not None and place < len(words) else ""
    if not text and dimension is Dimension.TIME:
        return 0.0
    unit = columns.unit.get(column, "")
    whole = f"{text} {unit}" if unit and _NUMBER.fullmatch(text) else text
    try:
        return parse_quantity(whole, dimension)
    except ValueError as error:
        raise ValueError(f"{column} {error}") from error
