"""Chakra execution traces of all ranks, read from a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from simulator.errors import InputError, Problem
from simulator.files import read_json
from simulator.interchange.chakra_checks import (
    NODE_TYPES,
    node_problem,
    wrong_attributes,
    wrong_forecast,
)
from simulator.interchange.chakra_files import GROUPS_FILE, split_messages
from simulator.interchange.chakra_nodes import KINDS, STEP_SECONDS, attributes_of, from_chakra
from simulator.interchange.chakra_schema import GlobalMetadata, Node, NodeType
from simulator.interchange.checks import check_workload, few
from simulator.interchange.records import EVERY_RANK, TraceNode, Workload

MAX_TRACE_BYTES = 2**30
"""Of the trace of one rank."""
_GROUP = re.compile(r"[0-9]{1,18}")
_NAME = re.compile(r"(?P<prefix>.*?)\.(?P<rank>\d{1,7})\.et")


@dataclass(slots=True)
class _File:
    """What the file of one rank says."""

    nodes: list[TraceNode] = field(default_factory=list)
    groups: dict[int, tuple[int, ...]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    forecast: float | None = None
    seen: set[int] = field(default_factory=set)


def read_chakra(folder: Path | str) -> tuple[Workload, float | None]:
    """Return the traces in a folder, and the step time in seconds that their writer forecast.

    Files are called `<any>.<rank>.et`, ranks counted from 0. Groups are in `comm_groups.json`, as
    ASTRA-sim wants them, or in the metadata node that PyTorch's traces begin with.

    Raises:
        InputError: with everything that is wrong: ranks that are missing, nodes that cannot be
            replayed, cycles, collectives that not all of their ranks do.
    """
    folder = Path(folder)
    paths = _paths(folder)
    groups = _groups(folder, len(paths))
    files = [_read(path, rank) for rank, path in enumerate(paths)]
    problems = [problem for file in files for problem in file.problems]
    if problems:
        raise InputError(*few(problems))
    for path, file in zip(paths, files, strict=True):
        for name, ranks in file.groups.items():
            if wrong := _wrong_ranks(ranks, len(paths)):
                key, shown = f"pg_name {name}", repr(ranks)[:60]
                problems.append(Problem(where=str(path), key=key, rule=wrong, found=shown))
            groups[name] = ranks or tuple(range(len(paths)))
    if problems:
        raise InputError(*few(problems))
    nodes = tuple(tuple(file.nodes) for file in files)
    workload = Workload(ranks=nodes, groups=groups, where=str(folder))
    check_workload(workload)
    return workload, files[0].forecast


def _paths(folder: Path) -> list[Path]:
    """Return the files of the ranks in order. Raises `InputError` unless each is there once."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(Problem(where=str(folder), rule=f"cannot be read: {reason}")) from error
    found = [match for match in map(_NAME.fullmatch, names) if match]
    if not found:
        rule = "has no execution traces, which are called <name>.<rank>.et"
        raise InputError(Problem(where=str(folder), rule=rule, fix="one file for each rank"))
    prefixes = sorted({match["prefix"] for match in found})
    if len(prefixes) > 1:
        rule = "must hold the ranks of one run"
        shown = ", ".join(prefixes)
        raise InputError(
            Problem(where=str(folder), found=shown, rule=rule, fix="a folder for each")
        )
    by_rank: dict[int, Path] = {}
    for match in found:
        first = by_rank.setdefault(int(match["rank"]), folder / match.string)
        if first.name != match.string:
            shown, rule = f"{first.name} and {match.string}", "must hold each rank once"
            raise InputError(Problem(where=str(folder), found=shown, rule=rule))
    missing = max(by_rank) + 1 - len(by_rank)
    if missing:
        absent = (rank for rank in count() if rank not in by_rank)
        shown = ", ".join(f"{prefixes[0]}.{rank}.et" for rank in islice(absent, min(3, missing)))
        rule = f"must hold every rank up to {max(by_rank)}"
        found_text = f"{missing} missing, {shown} first"
        raise InputError(Problem(where=str(folder), found=found_text, rule=rule))
    return [by_rank[rank] for rank in range(len(by_rank))]


def _groups(folder: Path, world: int) -> dict[int, tuple[int, ...]]:
    """Return the groups that stand beside the traces; none where nothing does."""
    path = folder / GROUPS_FILE
    if not path.exists():
        return {}
    table, problems = read_json(path), list[Problem]()
    found: dict[int, tuple[int, ...]] = {}
    if not isinstance(table, dict):
        raise InputError(Problem(where=str(path), rule='must be a table such as {"1": [0, 1]}'))
    for name, ranks in table.items():
        fits = isinstance(ranks, list) and ranks and all(type(rank) is int for rank in ranks)
        if not _GROUP.fullmatch(name) or not fits:
            rule = 'must be a number and ranks, such as "1": [0, 1]'
            problem = Problem(where=str(path), key=name[:20], rule=rule, found=repr(ranks)[:60])
            problems.append(problem)
        elif wrong := _wrong_ranks(ranks, world):
            problems.append(Problem(where=str(path), key=name, rule=wrong, found=repr(ranks)[:60]))
        else:
            found[int(name)] = tuple(ranks)
    if problems:
        raise InputError(*few(problems))
    # ASTRA-sim takes "0" for all ranks, whatever is said of it.
    found.pop(EVERY_RANK, None)
    return found


def _wrong_ranks(ranks: Iterable[int], world: int) -> str:
    """Return the rule that the ranks of a group break; empty where they break none."""
    listed = list(ranks)
    if len(set(listed)) == len(listed) and all(0 <= rank < world for rank in listed):
        return ""
    return f"must name ranks from 0 to {world - 1}, each once"


def _read(path: Path, rank: int) -> _File:
    """Return what is in the file of a rank."""
    file = _File()
    try:
        if path.exists() and not path.is_file():
            file.problems.append(Problem(where=str(path), rule="must be a file"))
            return file
        if path.stat().st_size > MAX_TRACE_BYTES:
            rule = f"must be at most {MAX_TRACE_BYTES} bytes"
            file.problems.append(Problem(where=str(path), rule=rule))
            return file
        head, *messages = split_messages(path.read_bytes())
        file.forecast = attributes_of(GlobalMetadata.FromString(head)).get(STEP_SECONDS)
        file.problems += wrong_forecast(path, file.forecast)
        for message in messages:
            _add(file, Node.FromString(message), path, rank)
    except (OSError, ValueError, DecodeError) as error:
        rule = (
            "is not a Chakra execution trace (GlobalMetadata, then nodes, each behind its length)"
        )
        file.problems.append(Problem(where=str(path), rule=rule, found=str(error)[:60]))
    return file


def _add(file: _File, node: Any, path: Path, rank: int) -> None:
    """Add a node to what is known of a file, or what is wrong with it."""
    known, kind = attributes_of(node), KINDS.get(node.type)
    if node.id in file.seen:
        file.problems.append(node_problem(path, node, "id", "must be its own", found=str(node.id)))
    file.seen.add(node.id)
    if kind is None:
        found, rule = (
            NODE_TYPES.get(node.type, str(node.type)),
            "is of a type that cannot be replayed",
        )
        file.problems.append(node_problem(path, node, "type", rule, found=found))
        return
    wrong = list(wrong_attributes(path, node, known, kind, rank))
    file.problems += wrong
    if not wrong:
        file.nodes.append(from_chakra(node, known, kind))
    if node.type == NodeType.METADATA_NODE and "pg_name" in node.inputs.values:
        file.groups |= _groups_in(node)


def _groups_in(node: Any) -> dict[int, tuple[int, ...]]:
    """Return the process groups that a metadata node of a PyTorch trace lists; () is all ranks."""
    try:
        listed = json.loads(node.inputs.values[2:-2])
        return {int(each["pg_name"]): tuple(map(int, each["ranks"])) for each in listed}
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return {}
