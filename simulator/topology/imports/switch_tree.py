"""A fabric from switches that name what is below them, without any bandwidth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from simulator.errors import InputError, Problem
from simulator.files import nearest
from simulator.topology.graph import Cable
from simulator.topology.imports.records import (
    ImportedFabric,
    ImportOptions,
    Note,
    Plug,
)
from simulator.units import GB

_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A switch, the switches and nodes below it, and its line in the file."""

    name: str
    switches: tuple[str, ...]
    nodes: tuple[str, ...]
    line: int | None


def fabric_of_switches(
    switches: Sequence[Switch], where: str, options: ImportOptions
) -> tuple[ImportedFabric, list[Note]]:
    """Return the fabric of a tree of switches; a node below several leaves has a rail at each.

    What a switch has upwards is what it has downwards, over the oversubscription at leaves, and in
    equal parts to each switch above it.

    Raises:
        InputError: with all that is named twice or never described, cycles, parts that nothing
            joins, and what a profile must say.
    """
    problems = _problems(switches, where)
    if options.profile is None or options.profile.node.nic is None:
        rule, fix = "has no bandwidths, and nothing says what the NICs of a node have", "--profile"
        problems.append(Problem(where=where, rule=rule, fix=f"{fix} with a machine that has NICs"))
    if problems or options.profile is None or options.profile.node.nic is None:
        raise InputError(*problems)
    ratio = options.oversubscription or options.profile.fabric.oversubscription
    per_node, nic = options.profile.node.nic.per_node, options.profile.node.nic.bandwidth
    plugs, notes = _plugs(switches, per_node)
    cables = _cables(switches, plugs, nic, ratio)
    fabric = ImportedFabric(
        nodes=tuple(dict.fromkeys(name for switch in switches for name in switch.nodes)),
        switches=tuple(switch.name for switch in switches),
        cables=tuple(cables),
        plugs=tuple(plugs),
    )
    text = (
        f"{per_node} x {nic / GB:g} GB/s a node and {ratio:g}:1 at the leaves, as the options say"
    )
    return fabric, [*notes, Note(text=text)] if cables else notes


def _problems(switches: Sequence[Switch], where: str) -> list[Problem]:
    known: dict[str, Switch] = {}
    problems = [
        _problem(where, switch, f"{switch.name} is described at line {first.line} already")
        for switch in switches
        if (first := known.setdefault(switch.name, switch)) is not switch
    ]
    problems += [
        _problem(where, switch, f"there is no switch {child}", nearest(child, list(known)))
        for switch in switches
        for child in switch.switches
        if child not in known
    ]
    if not any(switch.nodes for switch in switches):
        problems.append(Problem(where=where, rule="no switch has a node"))
    if problems:
        return problems
    cycle = _cycle(known)
    if cycle:
        rule = f"is below itself: {' -> '.join(cycle[:_SHOWN])}"
        return [_problem(where, known[cycle[0]], rule, "take one of them out of Switches=")]
    return _apart(switches, where)


def _problem(where: str, switch: Switch, rule: str, fix: str = "") -> Problem:
    key = switch.name if switch.line is None else f"line {switch.line}"
    return Problem(where=where, key=key, rule=rule, fix=fix)


def _cycle(known: dict[str, Switch]) -> list[str]:
    """Return the switches of a cycle, or none."""
    done: set[str] = set()
    for start, switch in known.items():
        if start in done:
            continue
        path, on_path = [start], {start}
        stack = [(start, iter(switch.switches))]
        while stack:
            child = next(stack[-1][1], None)
            if child is None:
                name, _ = stack.pop()
                done.add(name)
                on_path.discard(path.pop())
            elif child in on_path:
                return [*path[path.index(child) :], child]
            elif child not in done:
                stack.append((child, iter(known[child].switches)))
                path.append(child)
                on_path.add(child)
    return []


def _apart(switches: Sequence[Switch], where: str) -> list[Problem]:
    """Return a problem where no switch joins two parts of the network."""
    group = {switch.name: {switch.name} for switch in switches}
    for switch in switches:
        for child in (*switch.switches, *(f"{node}\n" for node in switch.nodes)):
            one, other = group[switch.name], group.setdefault(child, {child})
            if one is not other:
                one |= other
                for member in other:
                    group[member] = one
    parts = {id(found): found for found in group.values()}.values()
    if len(parts) == 1:
        return []
    tops = [next(s.name for s in reversed(switches) if s.name in part) for part in parts]
    shown = ", ".join(tops[:_SHOWN])
    rule = f"is {len(parts)} networks that nothing joins, one each below {shown}"
    fix = f"SwitchName=top Switches={','.join(tops[:_SHOWN])}"
    return [Problem(where=where, rule=rule, fix=fix)]


def _plugs(switches: Sequence[Switch], per_node: int) -> tuple[list[Plug], list[Note]]:
    leaves: dict[str, list[str]] = {}
    for switch in switches:
        for node in dict.fromkeys(switch.nodes):
            leaves.setdefault(node, []).append(switch.name)
    over = [node for node, above in leaves.items() if len(above) > per_node]
    notes = []
    if over:
        text = f"{over[0]} is below {len(leaves[over[0]])} switches, with {per_node} NICs a node"
        notes.append(Note(text=f"{text}: the first {per_node} have one each"))
    plugs = [
        Plug(node=node, port=port, switch=above[port * min(len(above), per_node) // per_node])
        for node, above in leaves.items()
        for port in range(per_node)
    ]
    return plugs, notes


def _cables(
    switches: Sequence[Switch], plugs: Sequence[Plug], nic: float, ratio: float
) -> list[Cable]:
    """Return the cables between switches, from the leaves up."""
    parents: dict[str, list[str]] = {switch.name: [] for switch in switches}
    for switch in switches:
        for child in dict.fromkeys(switch.switches):
            parents[child].append(switch.name)
    plugged = Counter(plug.switch for plug in plugs)
    into = {name: nic * plugged[name] for name in parents}
    waiting = {switch.name: len(set(switch.switches)) for switch in switches}
    ready = [name for name, below in waiting.items() if not below]
    cables = []
    for name in ready:
        out = into[name] / (ratio if plugged[name] else 1.0)
        for parent in parents[name]:
            share = out / len(parents[name])
            into[parent] += share
            cables.append(Cable(one=name, other=parent, bandwidth=share))
            waiting[parent] -= 1
            if not waiting[parent]:
                ready.append(parent)
    return cables
