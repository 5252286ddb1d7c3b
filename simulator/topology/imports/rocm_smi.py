"""The tables of `rocm-smi --showtopo`: link types, weights, hops and NUMA nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from simulator.errors import InputError, Problem
from simulator.hardware.cluster import ScaleUpKind
from simulator.topology.imports.matrix import Distance, Matrix
from simulator.topology.imports.node_tree import unit_of_matrix
from simulator.topology.imports.records import Imported, ImportOptions, Note, at_line

FORMAT = "rocm-smi --showtopo"
_TITLE = re.compile(r"=+\s*(Link Type between two GPUs|Weight between two GPUs)\s*=+")
_SECTION = re.compile(r"=+\s*\S.*=+")
_NUMA = re.compile(r"GPU\[?\s*(\d+)\]?\s*:\s*\(Topology\) Numa Node:\s*(-?\d+)")
_DEVICE = re.compile(r"GPU(\d+)")
_XGMI, _PCIE, _SELF = "XGMI", "PCIE", "0"
_LINK_TYPE, _WEIGHT = "Link Type between two GPUs", "Weight between two GPUs"
_ONE_HOP = "15"
"""Weight of a single xGMI hop; each further hop adds as much.

Source: ROCm/rocm-systems, projects/amdsmi/docs/how-to/amdsmi-cli-tool.md."""


def is_rocm_smi(text: str) -> bool:
    """Return whether a text holds the table of link types."""
    return any(_title(line) == _LINK_TYPE for line in text.splitlines())


def read_rocm_smi(text: str, where: str, options: ImportOptions) -> Imported:
    """Return the node that the tables describe; they name no NIC.

    Accelerators that are one xGMI hop apart have a link. Where weights are missing, all pairs of
    type XGMI count as one hop.

    Raises:
        InputError: with every row that cannot be read, or what a profile or option must say.
    """
    tables = _read(text, where)
    if tables.problems:
        raise InputError(*tables.problems)
    matrix = _matrix(tables, where)
    notes = [Note(text="no NIC is in this output; the profile's take their place")]
    if matrix.links:
        options = _with_rate(matrix, options)
    unit, more = unit_of_matrix(matrix, where, options)
    return Imported(where=where, format=FORMAT, unit=unit, notes=(*notes, *more))


@dataclass(slots=True, kw_only=True)
class _Tables:
    """The tables while they are read."""

    cells: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def _title(line: str) -> str:
    match = _TITLE.fullmatch(line.strip())
    return match[1] if match else ""


def _read(text: str, where: str) -> _Tables:
    tables = _Tables()
    title = ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if _SECTION.fullmatch(line.strip()):
            title = _title(line)
        elif numa := _NUMA.search(line):
            tables.domains[f"GPU{numa[1]}"] = numa[2]
        elif title and words and _DEVICE.fullmatch(words[0]):
            if len(words) == 1 or _DEVICE.fullmatch(words[1]):
                tables.columns.setdefault(title, words)
            else:
                _read_row(tables, title, number, words, where)
    return tables


def _read_row(tables: _Tables, title: str, number: int, words: list[str], where: str) -> None:
    name, *cells = words
    columns = tables.columns.get(title, [])
    allowed = {_XGMI, _PCIE, _SELF} if title == _LINK_TYPE else set()
    strange = [cell for cell in cells if allowed and cell not in allowed]
    if len(cells) != len(columns):
        rule = f"has {len(cells)} cells where the header names {len(columns)} devices"
        tables.problems.append(at_line(where, number, rule))
    elif strange:
        rule = f"a cell must be {_XGMI}, {_PCIE} or {_SELF}"
        tables.problems.append(at_line(where, number, rule, found=strange[0][:40]))
    else:
        tables.cells.setdefault(title, {})[name] = cells


def _matrix(tables: _Tables, where: str) -> Matrix:
    names = tables.columns.get(_LINK_TYPE, [])
    kinds, weights = tables.cells.get(_LINK_TYPE, {}), tables.cells.get(_WEIGHT, {})
    missing = [name for name in names if name not in kinds]
    if missing or not names:
        rule = "has no row in the table of link types"
        keys = missing or ["GPU0"]
        raise InputError(*(Problem(where=where, key=name, rule=rule) for name in keys))
    distances, links = {}, {}
    for one, name in enumerate(names):
        for other in range(one + 1, len(names)):
            far = weights.get(name, [_ONE_HOP] * len(names))[other]
            if kinds[name][other] == _PCIE:
                distances[one, other] = Distance.SYS
            elif far == _ONE_HOP:
                links[one, other] = 1
    return Matrix(
        names=tuple(name.lower() for name in names),
        accelerators=len(names),
        distances=distances,
        links=links,
        domains={n: tables.domains[name] for n, name in enumerate(names) if name in tables.domains},
    )


def _with_rate(matrix: Matrix, options: ImportOptions) -> ImportOptions:
    """Return options with the rate of one link: the profile's total over an accelerator's links.

    The table does not count links, so a pair has one, as wide as all that the pair has.
    """
    scale_up = options.profile.node.scale_up if options.profile else None
    if options.link is not None or scale_up is None or scale_up.kind is not ScaleUpKind.XGMI_MESH:
        return options
    most = max(map(matrix.row, range(matrix.accelerators)))
    return replace(options, link=scale_up.bandwidth / most)
