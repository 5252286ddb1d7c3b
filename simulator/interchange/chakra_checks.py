"""What of the attributes of a Chakra node keeps it from being replayed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any

from simulator.errors import Problem
from simulator.interchange.chakra_nodes import ALGORITHM, COLLECTIVES, NETWORK_SHARE, SECONDS
from simulator.interchange.chakra_schema import CommType, NodeType
from simulator.interchange.records import NodeKind

_NEEDED = {
    NodeKind.COLLECTIVE: ("comm_type", "comm_size"),
    NodeKind.SEND: ("comm_dst", "comm_size"),
    NodeKind.RECEIVE: ("comm_src",),
}
"""Attributes without which a node cannot be replayed."""
NODE_TYPES = {member.value: member.name for member in NodeType}
_COMM_TYPES = {member.value: member.name for member in CommType}
_NUMBERS = ("comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "num_ops", "tensor_size")


def wrong_attributes(
    path: Path, node: Any, known: Mapping[str, Any], kind: NodeKind, rank: int
) -> Iterator[Problem]:
    """Yield what of a node's attributes is missing, or is not what it must be."""
    for name in _NEEDED.get(kind, ()):
        if name not in known:
            yield node_problem(path, node, name, "is required of such a node")
    for name in _NUMBERS:
        value = known.get(name, 0)
        if not isinstance(value, int) or value < 0:
            rule = "must be a whole number from 0 on"
            yield node_problem(path, node, name, rule, found=repr(value))
    for name in (SECONDS, NETWORK_SHARE):
        value = known.get(name, 1.0)
        if not isinstance(value, float) or not 0 <= value < inf:
            yield node_problem(path, node, name, "must be a number from 0 on", found=repr(value))
    if not isinstance(known.get(ALGORITHM, ""), str):
        yield node_problem(path, node, ALGORITHM, "must be a name", found=repr(known[ALGORITHM]))
    if kind is NodeKind.COLLECTIVE:
        yield from _wrong_collective(path, node, known)
    own = {NodeKind.SEND: "comm_src", NodeKind.RECEIVE: "comm_dst"}.get(kind)
    if own is not None and known.get(own, rank) != rank:
        yield node_problem(
            path, node, own, f"must be the rank itself, {rank}", found=str(known[own])
        )


def _wrong_collective(path: Path, node: Any, known: Mapping[str, Any]) -> Iterator[Problem]:
    number = known.get("comm_type")
    if isinstance(number, int) and number not in COLLECTIVES:
        shown = _COMM_TYPES.get(number, str(number))
        fix = "one of: " + ", ".join(kind.name for kind in COLLECTIVES)
        yield node_problem(path, node, "comm_type", "cannot be priced", found=shown, fix=fix)
    name = known.get("pg_name", "")
    if not isinstance(name, str) or (name and not name.isdecimal()):
        yield node_problem(path, node, "pg_name", "must be the number of a group", found=repr(name))


def node_problem(
    path: Path, node: Any, key: str, rule: str, *, found: str = "", fix: str = ""
) -> Problem:
    """Return a problem with an attribute, or a field, of a node."""
    place = f"node {node.id} ({node.name}).{key}"
    return Problem(where=str(path), key=place, rule=rule, found=found, fix=fix)
