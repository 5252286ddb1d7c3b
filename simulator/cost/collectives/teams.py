"""The members of a group, domain by domain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.topology.graph import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Teams:
    """The members of groups; a team is those of one group that share a scale-up domain.

    Teams of a group stand in the order in which its ranks meet them, and so do members of a team,
    as a library orders them that finds the nodes of its ranks, however these are numbered.
    """

    accelerators: IntArray
    """(groups x size,) group by group, team by team."""
    first: IntArray
    """(teams,) the place in `accelerators` where each begins."""
    count: IntArray
    """(teams,) members of each."""
    group_first: IntArray
    """(groups,) the first team of each group."""
    group_count: IntArray
    """(groups,) teams of each group."""


def teams_of(accelerators: IntArray, domain: IntArray) -> Teams:
    """Return the teams of groups (groups, size), with the domain of each accelerator.

    >>> teams = teams_of(np.array([[0, 4, 1, 5, 2]]), np.array([0, 0, 0, 0, 1, 1, 1, 1]))
    >>> teams.accelerators, teams.count
    (array([0, 1, 2, 4, 5]), array([3, 2]))
    """
    groups, size = accelerators.shape
    flat = accelerators.ravel()
    group = np.repeat(np.arange(groups), size)
    key = group * (int(domain.max()) + 1) + domain[flat]
    _, met, found = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(met)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    team = place[found.ravel()]
    count = np.bincount(team, minlength=len(order)).astype(np.intp)
    group_count = np.bincount(group[met], minlength=groups).astype(np.intp)
    return Teams(
        accelerators=flat[np.argsort(team, kind="stable")],
        first=_starts(count),
        count=count,
        group_first=_starts(group_count),
        group_count=group_count,
    )


def coupled(
    teams: Teams, source: IntArray, target: IntArray, weight: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return messages between members, given those between teams: source, target, weight.

    Members of a team send equal shares and those of the other receive equal shares: both rows of
    members are laid along the weight, and whoever lies opposite another sends to it.
    """
    from_count, to_count = teams.count[source], teams.count[target]
    if np.array_equal(from_count, to_count):
        edge = np.repeat(np.arange(len(source)), from_count)
        slot = _within(from_count)
        left, right, share = slot, slot, 1.0 / from_count[edge]
    else:
        edge, left, right, share = _opposite(from_count, to_count)
    return (
        teams.accelerators[teams.first[source][edge] + left],
        teams.accelerators[teams.first[target][edge] + right],
        weight[edge] * share,
    )


def _opposite(left: IntArray, right: IntArray) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return the edge, both slots and the share of each piece where rows of slots lie opposite.

    Of `l` and `r` slots along a length of `l r`, one begins at each multiple of r and of l.
    """
    edges = np.arange(len(left))
    edge = np.concatenate((np.repeat(edges, left), np.repeat(edges, right)))
    begins = np.concatenate(
        (_within(left) * np.repeat(right, left), _within(right) * np.repeat(left, right))
    )
    order = np.lexsort((begins, edge))
    edge, begins = edge[order], begins[order]
    ends = np.append(begins[1:], 0)
    last = np.append(edge[1:] != edge[:-1], True)
    ends[last] = (left * right)[edge[last]]
    kept = ends > begins
    edge, begins, length = edge[kept], begins[kept], (ends - begins)[kept]
    return edge, begins // right[edge], begins // left[edge], length / (left * right)[edge]


def _starts(counts: IntArray) -> IntArray:
    return np.cumsum(counts) - counts


def _within(counts: IntArray) -> IntArray:
    """Return 0, 1, ... below each count, one after another."""
    return np.arange(int(counts.sum())) - np.repeat(_starts(counts), counts)
