"""What of the attributes of a Chakra node keeps it from being replayed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simulator.errors import Problem
from simulator.interchange.chakra_nodes import (
    ALGORITHM,
    COLLECTIVES,
    NETWORK_SHARE,
    SECONDS,
    STEP_SECONDS,
)
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
_MOST = {SECONDS: 1e12, NETWORK_SHARE: 1.0}
"""Of numbers: more seconds than any run has, so that their sum is finite, and all of the bytes."""
_GROUP = re.compile(r"[0-9]{0,18}")
_NUMBERS = ("comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "num_ops", "tensor_size")


def wrong_forecast(path: Path, forecast: Any) -> Iterator[Problem]:
    """Yield what is wrong with the step time that the writer of a trace forecast, if it did."""
    most = _MOST[SECONDS]
    if forecast is not None and (not isinstance(forecast, float) or not 0 <= forecast <= most):
        rule = f"must be a number from 0 to {most:g}"
        yield Problem(where=str(path), key=STEP_SECONDS, rule=rule, found=repr(forecast)[:60])


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
    for name, most in _MOST.items():
        value = known.get(name, 0.0)
        if not isinstance(value, float) or not 0 <= value <= most:
            rule = f"must be a number from 0 to {most:g}"
            yield node_problem(path, node, name, rule, found=repr(value))
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
    if not isinstance(name, str) or not _GROUP.fullmatch(name):
        yield node_problem(path, node, "pg_name", "must be the number of a group", found=repr(name))


def node_problem(
    path: Path, node: Any, key: str, rule: str, *, found: str = "", fix: str = ""
) -> Problem:
    """Return a problem with an attribute, or a field, of a node."""
    place = f"node {node.id} ({node.name}).{key}"
    return Problem(where=str(path), key=place, rule=rule, found=found, fix=fix)
