"""Which collective a run timed, over how many ranks and nodes: said, asked for, or derived."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.import_arithmetic import collectives_by_factor, ranks_by_factor
from calibrate.import_options import ImportOptions
from calibrate.import_samples import Device, Facts, Run
from calibrate.import_words import collective_in
from calibrate.points import GroupKind
from simulator.errors import Problem
from simulator.parallel.groups import Collective

_NODES_IN_NAME = re.compile(r"(?<![A-Za-z0-9])(\d{1,4})_?-?(?:n|nodes?)(?![A-Za-z0-9])", re.I)

_KINDS = tuple(each for each in Collective if each is not Collective.HOST_COPY)
_HALVES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all points of a run have in common."""

    collective: Collective
    ranks: int
    nodes: int
    group: GroupKind
    derived: tuple[str, ...] = ()
    """What the log does not say and how it was found, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The ranks that a log lists."""

    ranks: int
    """Of one group."""
    nodes: int
    """That one group spans."""
    groups: int
    hosts: int
    even: bool
    """Whether all groups are of one size."""


def setting_of(run: Run, name: str, options: ImportOptions) -> Setting | tuple[Problem, ...]:
    """Return what a run timed, or what is missing and which option supplies it."""
    derived: list[str] = []
    world = world_of(run.facts.devices)
    ranks = world.ranks if world else _ranks(run.facts, options, derived)
    collective = _collective(run, name, options, ranks, derived)
    if isinstance(collective, Problem):
        return (collective,)
    if ranks is None and (ranks := ranks_by_factor(collective, run.samples)) is not None:
        derived.append(f"{ranks} ranks from busbw / algbw")
    if ranks is None:
        return (_missing(run, "the number of ranks", "--ranks N"),)
    if ranks == 1:
        rule = "one rank has nobody to talk to: nothing was communicated"
        fix = "build nccl-tests with MPI=1, or give it more GPUs (-g)"
        return (Problem(key=_place(run), rule=rule, fix=fix),)
    nodes = world.nodes if world else _nodes(run.facts, name, options, ranks, derived)
    if nodes is None:
        return (_missing(run, "the number of nodes", "--nodes N, or --ranks-per-node N"),)
    if nodes > ranks:
        rule = f"{ranks} ranks cannot span {nodes} nodes"
        return (Problem(key=_place(run), rule=rule, fix="--ranks or --nodes"),)
    if world and not world.even:
        rule = "the ranks are split into groups of different sizes"
        return (Problem(key=_place(run), rule=rule),)
    group = _group_kind(world, ranks, nodes)
    derived += _contrary(options, collective, ranks, nodes)
    return Setting(
        collective=collective, ranks=ranks, nodes=nodes, group=group, derived=tuple(derived)
    )


def world_of(devices: Sequence[Device]) -> World | None:
    """Return the ranks of a log's list; None where the list is cut or there is none.

    Nodes that all call themselves the same (containers) are told apart by their devices: one
    device is of one rank.
    """
    listed = {device.rank: device for device in devices}
    if not listed or len(listed) != max(listed) + 1:
        return None
    groups: dict[int, list[Device]] = {}
    for device in listed.values():
        groups.setdefault(device.group, []).append(device)
    first = groups[min(groups)]
    return World(
        ranks=len(first),
        nodes=_hosts(first),
        groups=len(groups),
        hosts=_hosts(list(listed.values())),
        even=len({len(members) for members in groups.values()}) == 1,
    )


def _hosts(devices: Sequence[Device]) -> int:
    uses = Counter((device.host, device.index) for device in devices)
    most: dict[str, int] = {}
    for (host, _), times in uses.items():
        most[host] = max(most.get(host, 0), times)
    return sum(most.values())


def _collective(
    run: Run, name: str, options: ImportOptions, ranks: int | None, derived: list[str]
) -> Collective | Problem:
    if run.facts.other:
        rule = f"{run.facts.other} is no collective that is simulated"
        return Problem(key=_place(run), rule=rule)
    if run.facts.collective is not None:
        return run.facts.collective
    if options.collective is not None:
        return options.collective
    named = collective_in(name)
    if named is not None:
        derived.append(f"{named} from the file's name")
        return named
    allowed = collectives_by_factor(run.samples, ranks)
    if len(allowed) == 1:
        derived.append(f"{allowed[0]} from busbw / algbw, redop and root")
        return allowed[0]
    return _missing(run, "the collective", "--collective " + "|".join(allowed or _KINDS))


def _ranks(facts: Facts, options: ImportOptions, derived: list[str]) -> int | None:
    if facts.devices:
        derived.append("the list of ranks has gaps")
    if facts.ranks is not None:
        return facts.ranks
    if options.ranks is not None:
        return options.ranks
    if facts.processes is not None:
        return facts.processes * (facts.threads or 1) * (facts.gpus or 1)
    if facts.nodes and facts.per_node:
        return facts.nodes * facts.per_node * (facts.threads or 1) * (facts.gpus or 1)
    return None


def _nodes(
    facts: Facts, name: str, options: ImportOptions, ranks: int, derived: list[str]
) -> int | None:
    if facts.nodes is not None:
        return facts.nodes
    if options.nodes is not None:
        return options.nodes
    each = (facts.per_node or 0) * (facts.threads or 1) * (facts.gpus or 1) or options.per_node
    if each:
        return max(1, -(-ranks // each))
    driven = (facts.threads or 1) * (facts.gpus or 1)
    if driven == ranks:
        derived.append(f"1 node: one process drives all {ranks} GPUs")
        return 1
    named = set(_NODES_IN_NAME.findall(name))
    if len(named) == 1:
        nodes = int(named.pop())
        derived.append(f"{nodes} nodes from the file's name")
        return nodes or None
    return None


def _group_kind(world: World | None, ranks: int, nodes: int) -> GroupKind:
    """Return which ranks take part, where a communicator was split or every node has one."""
    if world is not None and world.groups > 1 and nodes > 1:
        halves = ranks > nodes and world.groups == _HALVES
        return GroupKind.HALVES if halves else GroupKind.RAILS
    return GroupKind.ONE_A_NODE if nodes == ranks > 1 else GroupKind.FIRST


def _contrary(options: ImportOptions, collective: Collective, ranks: int, nodes: int) -> list[str]:
    """Return the options that the log overrules."""
    said = (
        ("--collective", options.collective, collective),
        ("--ranks", options.ranks, ranks),
        ("--nodes", options.nodes, nodes),
    )
    return [
        f"{option} {asked} is not used, the log says {found}"
        for option, asked, found in said
        if asked is not None and asked != found
    ]


def _missing(run: Run, what: str, option: str) -> Problem:
    return Problem(key=_place(run), rule=f"{what} is not said anywhere", fix=option)


def _place(run: Run) -> str:
    return f"line {run.samples[0].line}" if run.samples else ""
