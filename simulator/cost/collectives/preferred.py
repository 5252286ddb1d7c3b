"""Algorithms that a scenario names, checked before anything is computed with them."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.cost.collectives.registry import ALGORITHMS
from simulator.cost.collectives.request import Links, links_of
from simulator.errors import Problem
from simulator.files import nearest
from simulator.hardware.profile import Profile
from simulator.parallel.groups import Collective, GroupShape

_DOMAINS = 4
"""Fewest domains whose ranks form a grid, so that no algorithm wants for domains."""


def algorithm_problems(
    algorithms: Mapping[str, str],
    profile: Profile,
    *,
    where: str,
    key: str,
    fabric_reduces: bool = False,
) -> list[Problem]:
    """Return what is wrong with a table of collective -> algorithm, found at `key` of a file.

    `fabric_reduces`: switches between nodes reduce, whatever the profile says.
    """
    links = links_of(profile, fabric_reduces=fabric_reduces)
    found = [_problem(collective, name, profile, links) for collective, name in algorithms.items()]
    return [
        Problem(
            where=where, key=f"{key}.{collective}", found=repr(name), rule=wrong[0], fix=wrong[1]
        )
        for (collective, name), wrong in zip(algorithms.items(), found, strict=True)
        if wrong is not None
    ]


def _problem(collective: str, name: str, profile: Profile, links: Links) -> tuple[str, str] | None:
    """Return the rule that an entry breaks, and the fix."""
    if collective not in set(Collective):
        return "is no collective", nearest(collective, [kind.value for kind in Collective])
    does = [other for other, found in ALGORITHMS.items() if collective in found.collectives]
    if name not in ALGORITHMS:
        return "is not a collective algorithm", nearest(name, does)
    if name not in does:
        return f"does not do {collective}", "one of: " + ", ".join(does)
    shapes = _shapes(profile.node.scale_up.domain_size)
    if any(ALGORITHMS[name].serves(shape, links) for shape in shapes):
        return None
    able = [
        other for other in does if any(ALGORITHMS[other].serves(shape, links) for shape in shapes)
    ]
    return f"serves no group on {profile.name}", "one of: " + ", ".join(able)


def _shapes(domain: int) -> list[GroupShape]:
    """Return a whole domain, several, and a rank of each of several."""
    sizes = [(domain, domain), (_DOMAINS * domain, domain), (_DOMAINS, 1)]
    return [GroupShape(size=size, per_domain=each) for size, each in sizes]
