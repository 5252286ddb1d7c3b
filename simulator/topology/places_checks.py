"""Where ranks are placed, and what is wrong with it: every rule returns all that break it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from simulator.errors import Problem
from simulator.files import nearest

_NODE_NUMBER_DIGITS = 9
_SHOWN = 8
"""Ranks that a message lists."""
_COMPARED = 2**10
"""Names of nodes among which the one that was meant is looked for."""


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The nodes of a cluster, all of `size` accelerators."""

    names: tuple[str, ...]
    size: int

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each node by its name."""
        return {name: number for number, name in enumerate(self.names)}

    def find(self, text: str) -> int | None:
        """Return the number of a node that is given by name or number; None where there is none."""
        if text in self.number:
            return self.number[text]
        digits = text if text.isdecimal() and len(text) <= _NODE_NUMBER_DIGITS else ""
        return int(digits) if digits and int(digits) < len(self.names) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A rank and where a line of the file puts it; None where the line leaves that open."""

    line: int
    rank: int
    node: str
    accelerator: int | None = None


def seat_problems(seats: Sequence[Seat], where: str, ranks: int, nodes: Nodes) -> list[Problem]:
    """Return ranks and accelerators that do not exist or come twice, and unknown nodes."""
    return [
        *_unknown_nodes(seats, where, nodes),
        *_wrong_ranks(seats, where, ranks),
        *_wrong_places(seats, where, nodes),
    ]


def accelerators_of(seats: Sequence[Seat], nodes: Nodes) -> list[int | None]:
    """Return the accelerator of each seat; None where there is no such node or accelerator."""
    filled: Counter[int | None] = Counter()
    found: list[int | None] = []
    for seat in seats:
        node = nodes.find(seat.node)
        place = filled[node] if seat.accelerator is None else seat.accelerator
        filled[node] += 1
        there = node is not None and place < nodes.size
        found.append(node * nodes.size + place if node is not None and there else None)
    return found


def _unknown_nodes(seats: Sequence[Seat], where: str, nodes: Nodes) -> list[Problem]:
    first = {seat.node: seat for seat in reversed(seats)}
    rule = f"no such node; there are {len(nodes.names)}, {nodes.names[0]} to {nodes.names[-1]}"
    return [
        at_line(where, seat.line, rule, found=repr(name), fix=_named(name, nodes))
        for name, seat in reversed(first.items())
        if nodes.find(name) is None
    ]


def _wrong_ranks(seats: Sequence[Seat], where: str, ranks: int) -> list[Problem]:
    """Return seats of ranks that do not exist or have a place already."""
    problems = []
    line_of: dict[int, int] = {}
    for seat in seats:
        if seat.rank >= ranks:
            rule, fix = f"ranks are 0 to {ranks - 1}", "leave the line out"
            problems.append(at_line(where, seat.line, rule, found=f"rank {seat.rank}", fix=fix))
        elif seat.rank in line_of:
            rule = f"rank {seat.rank} has a place since line {line_of[seat.rank]}"
            problems.append(at_line(where, seat.line, rule, fix="place each rank once"))
        line_of.setdefault(seat.rank, seat.line)
    return problems


def _wrong_places(seats: Sequence[Seat], where: str, nodes: Nodes) -> list[Problem]:
    """Return seats on accelerators that do not exist or have a rank already."""
    problems = []
    line_of: dict[int, int] = {}
    for seat, accelerator in zip(seats, accelerators_of(seats, nodes), strict=True):
        if nodes.find(seat.node) is None:
            continue
        if accelerator is None:
            given = "" if seat.accelerator is None else f"accelerator {seat.accelerator}"
            rule = f"{seat.node} has {nodes.size} accelerators, one for each rank"
            fix = f"0 to {nodes.size - 1}" if given else f"place rank {seat.rank} on another node"
            problems.append(at_line(where, seat.line, rule, found=given, fix=fix))
            continue
        if accelerator in line_of:
            place = accelerator % nodes.size
            rule = f"{seat.node} accelerator {place} has a rank since line {line_of[accelerator]}"
            problems.append(at_line(where, seat.line, rule, fix="give each rank its own"))
        line_of.setdefault(accelerator, seat.line)
    return problems


def missing_ranks(seats: Sequence[Seat], where: str, ranks: int) -> list[Problem]:
    """Return one problem for all ranks that the file leaves out."""
    lost = sorted(set(range(ranks)) - {seat.rank for seat in seats})
    if not lost:
        return []
    shown = ", ".join(map(str, lost[:_SHOWN]))
    more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
    found = f"no place for rank {shown}{more}"
    rule = f"each of the {ranks} ranks has a place"
    return [Problem(where=where, found=found, rule=rule, fix=f"add {len(lost)} places")]


def _named(name: str, nodes: Nodes) -> str:
    """Return the node that was meant by a wrong name, if one is like it."""
    close = nearest(name, list(nodes.names[:_COMPARED]))
    return close if close.startswith("did") else f"{nodes.names[0]} to {nodes.names[-1]}"


def at_line(where: str, line: int, rule: str, found: str = "", fix: str = "") -> Problem:
    """Return a problem with one line of a file."""
    return Problem(where=where, key=f"line {line}", found=found, rule=rule, fix=fix)
