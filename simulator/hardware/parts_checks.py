"""Whether the parts of a cluster can be forecast together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simulator.errors import Problem
from simulator.hardware.accelerator import Dtype
from simulator.hardware.parts import Part


def part_problems(parts: Sequence[Part], where: str) -> Iterator[Problem]:
    """Yield what keeps the parts from making up one cluster.

    Nodes are of one size and scale-up domains too, so that a rank of any part has as many
    neighbours; a part that others follow is whole domains; and all have NICs.
    """
    first = parts[0].profile
    for number, part in enumerate(parts):
        key, name = _key(number), part.profile.name
        if number:
            yield from _shape_problems(part, parts[0], where, number)
        if len(parts) > 1 and part.profile.node.nic is None:
            yield Problem(
                where=where,
                key=f"{key}.profile",
                found=name,
                rule="it has no NIC, so its nodes cannot reach those of another part",
                fix="a profile with a [node.nic] table",
            )
        domain = first.node.scale_up.domain_size
        if number < len(parts) - 1 and part.accelerators % domain and domain > 1:
            whole = max(1, domain // part.profile.node.accelerators)
            yield Problem(
                where=where,
                key=f"{key}.nodes",
                found=f"{part.nodes} nodes, {part.accelerators} accelerators",
                rule=f"a part that another follows is whole scale-up domains of {domain} "
                "accelerators",
                fix=f"{-(-part.nodes // whole) * whole} nodes, or put it last",
            )


def uniform_problem(parts: Sequence[Part], where: str, key: str, what: str) -> Problem:
    """Return that `what` is not offered for a mixed cluster."""
    names = ", ".join(dict.fromkeys(part.profile.name for part in parts))
    return Problem(
        where=where,
        key=key,
        found=f"a cluster of {names}",
        rule=f"{what} knows clusters of one machine only",
        fix="leave it out, or cluster.part",
    )


def precision_problems(parts: Sequence[Part], precision: Dtype, where: str) -> Iterator[Problem]:
    """Yield which parts cannot run a job's precision, each profile once."""
    profiles = {part.profile.name: part.profile for part in parts}
    for name, profile in profiles.items():
        offered = [kind for kind in profile.accelerator.peak if kind in profile.constants.gemm]
        if precision not in offered:
            yield Problem(
                where=where,
                key="job.precision",
                found=precision.value,
                rule=f"{name} has no peak or no constants for this precision",
                fix="one of: " + ", ".join(sorted(offered)),
            )


def _shape_problems(part: Part, first: Part, where: str, number: int) -> Iterator[Problem]:
    """Yield where a part's nodes or domains are not of the first part's size."""
    node, other = part.profile.node, first.profile.node
    sizes = (
        ("accelerators a node", node.accelerators, other.accelerators),
        (
            "accelerators in a scale-up domain",
            node.scale_up.domain_size,
            other.scale_up.domain_size,
        ),
    )
    for what, own, wanted in sizes:
        if own != wanted:
            yield Problem(
                where=where,
                key=f"{_key(number)}.profile",
                found=f"{part.profile.name}, {own} {what}",
                rule=f"all parts of a cluster have as many as the first: {first.profile.name} "
                f"has {wanted}",
                fix="forecast the parts one by one, or a profile of the same shape",
            )


def _key(number: int) -> str:
    """Return where the part of a number stands in a scenario."""
    return "cluster" if number == 0 else f"cluster.part.{number - 1}"
