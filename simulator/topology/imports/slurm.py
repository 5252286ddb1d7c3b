"""Slurm's `topology.conf`: the switches of a tree, or the blocks of a block topology."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from simulator.errors import InputError, Problem
from simulator.files import nearest
from simulator.topology.hostlist import expand_hostlist
from simulator.topology.imports.records import Imported, ImportOptions, Note, at_line
from simulator.topology.imports.switch_tree import Switch, fabric_of_switches

FORMAT = "Slurm topology.conf"
_ENTRY = re.compile(r"^\s*(SwitchName|BlockName)\s*=", re.I | re.M)
_PAIR = re.compile(r"([A-Za-z]+)\s*=\s*(\"[^\"]*\"|'[^']*'|\S+)")
_SWITCH, _BLOCK = "switchname", "blockname"
_NODES, _SWITCHES, _SPEED, _SIZES = "nodes", "switches", "linkspeed", "blocksizes"
_KNOWN = {"SwitchName", "BlockName", "Nodes", "Switches", "LinkSpeed", "BlockSizes"}
TOP = "blocks"
"""The switch that joins all blocks, which the file implies."""


def is_slurm(text: str) -> bool:
    """Return whether a text has lines of such a file."""
    return _ENTRY.search(text) is not None


def read_slurm(text: str, where: str, options: ImportOptions) -> Imported:
    """Return the fabric that a file describes.

    A switch of the file stands for as many real ones as it takes. Its cable upwards has what comes
    in from below (the NICs of its nodes), over the oversubscription; speeds in the file are in
    units of the writer's choice and not used, as in Slurm itself. Blocks are switches that one
    more switch joins.

    Raises:
        InputError: with all lines that cannot be read, switches that are named twice or never
            described, cycles, and parts that no switch joins.
    """
    reading = _read(text, where)
    if reading.blocks and reading.switches:
        rule = "must describe switches or blocks, not both"
        reading.problems.append(Problem(where=where, rule=rule))
    if reading.problems:
        raise InputError(*reading.problems)
    switches = [*reading.switches, *reading.blocks]
    if not switches:
        rule = "has no switch and no block"
        raise InputError(Problem(where=where, rule=rule, fix="SwitchName=leaf0 Nodes=node[01-16]"))
    if len(reading.blocks) > 1:
        top = tuple(block.name for block in reading.blocks)
        switches.append(Switch(name=TOP, switches=top, nodes=(), line=None))
    fabric, notes = fabric_of_switches(switches, where, options)
    notes = [*reading.notes, *notes]
    return Imported(where=where, format=FORMAT, fabric=fabric, notes=tuple(notes))


@dataclass(slots=True, kw_only=True)
class _Reading:
    """A file while it is read."""

    switches: list[Switch] = field(default_factory=list)
    blocks: list[Switch] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    speeds: int = 0


def _read(text: str, where: str) -> _Reading:
    reading = _Reading()
    for number, line in _logical_lines(text):
        pairs = {match[1].lower(): match[2].strip("\"'") for match in _PAIR.finditer(line)}
        rest = _PAIR.sub("", line).strip()
        if rest or not pairs:
            reading.notes.append(Note(line=number, text=f"not understood: {(rest or line)[:60]}"))
        if _SWITCH in pairs or _BLOCK in pairs:
            _read_entry(reading, number, pairs, where)
        elif _SIZES in pairs:
            text_ = "BlockSizes is how Slurm groups blocks when it places jobs; not used"
            reading.notes.append(Note(line=number, text=text_))
        elif pairs:
            reading.notes.append(Note(line=number, text=f"not used: {next(iter(pairs))}"))
    if reading.speeds:
        text_ = f"LinkSpeed of {reading.speeds} switches is in units of the writer's; not used"
        reading.notes.append(Note(text=text_))
    return reading


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments, those that end with a backslash joined with the next."""
    start, held = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.partition("#")[0].rstrip()
        start = start or number
        if bare.endswith("\\"):
            held += bare[:-1] + " "
            continue
        if (held + bare).strip():
            yield start, (held + bare).strip()
        start, held = 0, ""
    if held.strip():
        yield start, held.strip()


def _read_entry(reading: _Reading, number: int, pairs: dict[str, str], where: str) -> None:
    """Read the line of one switch or block."""
    is_block = _BLOCK in pairs
    name = pairs.pop(_BLOCK if is_block else _SWITCH)
    reading.speeds += pairs.pop(_SPEED, None) is not None
    nodes = _names(reading, number, pairs.pop(_NODES, ""), "Nodes", where)
    switches = _names(reading, number, pairs.pop(_SWITCHES, ""), "Switches", where)
    for key in pairs:
        known = nearest(key, [word.lower() for word in _KNOWN])
        reading.notes.append(Note(line=number, text=f"{key} is not understood ({known})"))
    if not nodes and not switches and not reading.problems:
        rule = f"{name} has neither Nodes nor Switches"
        reading.problems.append(at_line(where, number, rule, fix=f"{name} Nodes=node[01-16]"))
    switch = Switch(name=name, switches=tuple(switches), nodes=tuple(nodes), line=number)
    (reading.blocks if is_block else reading.switches).append(switch)


def _names(reading: _Reading, number: int, text: str, key: str, where: str) -> list[str]:
    if not text:
        return []
    try:
        return expand_hostlist(text)
    except ValueError as error:
        reading.problems.append(at_line(where, number, f"{key} {error}", found=repr(text[:60])))
        return []
