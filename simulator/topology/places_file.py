"""The file that says where ranks run: a line a rank, a line a node, or rank, node, accelerator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import numpy as np

from simulator.errors import InputError, Problem
from simulator.topology.graph import IntArray
from simulator.topology.hostlist import expand_hostlist
from simulator.topology.places_checks import (
    Nodes,
    Seat,
    accelerators_of,
    at_line,
    missing_ranks,
    seat_problems,
)

_HEADER = ("rank", "node", "accelerator")
_SLOTS = re.compile(r"slots=([1-9]\d{0,6})")
_NUMBER = re.compile(r"\d{1,9}")
_ROW = re.compile(r"\s*(?:rank|\d{1,9})\s*,", re.IGNORECASE)
"""How a line of a table begins."""
_CUT = 60
"""Letters of a line that a message shows."""


def parse_places(text: str, where: str, ranks: int, nodes: Nodes) -> IntArray:
    """Return (ranks,) the accelerator of each rank.

    A line "rank,node,accelerator" places one rank, in any order; `accelerator` counts from 0 in its
    node. Otherwise a line names nodes, as "node3", "3" or "node[0-3,8]", each with "slots=8" if it
    takes as many ranks. Without slots there are as many names as ranks (each takes the next one, as
    in SLURM_HOSTFILE) or as nodes are needed (each is filled). A node's ranks take its accelerators
    in order. "#" begins a comment.

    Raises:
        InputError: with a problem for every wrong line, and one for ranks without a place.
    """
    problems: list[Problem] = []
    lines = list(_lines(text))
    if any(_ROW.match(line) for _, line in lines):
        seats = list(_table(lines, where, problems))
    else:
        seats = list(_host_file(lines, where, ranks, nodes, problems))
    readable = not problems
    problems += seat_problems(seats, where, ranks, nodes)
    if readable:
        problems += missing_ranks(seats, where, ranks)
    if problems:
        raise InputError(*problems)
    found = np.empty(ranks, dtype=np.intp)
    for seat, accelerator in zip(seats, accelerators_of(seats, nodes), strict=True):
        assert accelerator is not None, "every node was found to be known"
        found[seat.rank] = accelerator
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, with their numbers."""
    for number, line in enumerate(text.splitlines(), 1):
        said = line.split("#", 1)[0].strip()
        if said:
            yield number, said


def _table(lines: list[tuple[int, str]], where: str, problems: list[Problem]) -> Iterator[Seat]:
    """Yield the seats of lines "rank,node,accelerator"."""
    if [cell.strip().lower() for cell in lines[0][1].split(",")] == list(_HEADER):
        lines = lines[1:]
    for number, line in lines:
        cells = [cell.strip() for cell in line.split(",")]
        numbers = [_NUMBER.fullmatch(cell) for cell in (cells[0], cells[-1])]
        if len(cells) != len(_HEADER) or not all(numbers):
            rule = f"must be {','.join(_HEADER)}, the first and the last as numbers"
            problems.append(at_line(where, number, rule, found=repr(line[:_CUT]), fix="0,node0,0"))
            continue
        yield Seat(line=number, rank=int(cells[0]), node=cells[1], accelerator=int(cells[2]))


def _host_file(
    lines: list[tuple[int, str]], where: str, ranks: int, nodes: Nodes, problems: list[Problem]
) -> Iterator[Seat]:
    """Yield the seats of lines that name nodes, rank after rank."""
    named: list[tuple[int, str, int | None]] = []
    for number, line in lines:
        hosts, *rest = line.split()
        slots = _SLOTS.fullmatch(rest[0]) if len(rest) == 1 else None
        try:
            names = expand_hostlist(hosts)
        except ValueError as error:
            problems.append(at_line(where, number, str(error), found=repr(line[:_CUT])))
            continue
        if rest and slots is None:
            rule = "after the nodes of a line only slots=N may follow"
            problems.append(at_line(where, number, rule, found=repr(line[:_CUT]), fix="slots=8"))
        named += [(number, name, int(slots.group(1)) if slots else None) for name in names]
    if problems:
        return
    default = _ranks_of_each(named, ranks, nodes.size, where, problems)
    places = ((at, name) for at, name, slots in named for _ in range(slots or default))
    for rank, (at, name) in enumerate(islice(places, ranks)):
        yield Seat(line=at, rank=rank, node=name)


def _ranks_of_each(
    named: list[tuple[int, str, int | None]],
    ranks: int,
    size: int,
    where: str,
    problems: list[Problem],
) -> int:
    """Return how many ranks a node takes each time it is named without slots."""
    needed = -(-ranks // size)
    if any(slots is not None for _, _, slots in named) or len(named) == ranks:
        return 1
    if len(named) == needed:
        return size
    rule = f"must name {ranks} nodes, one for each rank, or the {needed} nodes that they fill"
    fix = f"add slots=N to each line, {ranks} in all"
    problems.append(Problem(where=where, found=f"{len(named)} names", rule=rule, fix=fix))
    return 0
