"""Max-min fair sharing of links between flows, each with a cap of its own."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

_Users = dict[Hashable, list[tuple[int, float]]]
"""The flows on each link that still rise, with the weight that each has on it."""


def max_min_rates(
    routes: Sequence[Sequence[Hashable]],
    caps: Sequence[float],
    capacity: Mapping[Hashable, float],
    weights: Sequence[Sequence[float]] | None = None,
) -> list[float]:
    """Return the rate of each flow in bytes/s: progressive filling.

    A flow of rate r takes w r of a link on which its weight is w (1 where no `weights` are given,
    else one for each link of its route). All rates rise together; a flow stops at its cap or when
    one of its links is full: `sum w r = capacity`. No flow can then gain without another, that has
    no more, losing. So a bundle of n equal flows, each of which gets what a single flow beside the
    bundle gets, is one flow of weight n.

    >>> max_min_rates([["a"], ["a", "b"], ["b"]], [9.0, 9.0, 9.0], {"a": 4.0, "b": 10.0})
    [2.0, 2.0, 8.0]
    >>> max_min_rates([["a"], ["a"]], [9.0, 9.0], {"a": 8.0}, [[3.0], [1.0]])
    [2.0, 2.0]

    Source: Bertsekas and Gallager, Data Networks, section 6.5.2.
    """
    rates, rising = list(caps), [True] * len(caps)
    users = _users(routes, weights)
    left = {link: capacity[link] for link in users}
    shares = {link: left[link] / _load(open_flows) for link, open_flows in users.items()}
    by_cap = sorted(range(len(caps)), key=caps.__getitem__, reverse=True)
    level = 0.0
    while any(rising):
        # No share falls when flows stop below it, so that all caps up to the lowest share hold.
        level = max(level, min(shares.values(), default=math.inf))
        stopped = []
        while by_cap and caps[by_cap[-1]] <= level:
            stopped.append(by_cap.pop())
        stopped = [flow for flow in stopped if rising[flow]]
        if not stopped:
            full = [link for link, share in shares.items() if share <= level]
            stopped = [flow for link in full for flow, _ in users[link]]
            for flow in stopped:
                rates[flow] = level
        for flow in stopped:
            rising[flow] = False
        for link in {link for flow in stopped for link in routes[flow]}:
            left[link] -= sum(w * rates[flow] for flow, w in users[link] if not rising[flow])
            users[link] = [user for user in users[link] if rising[user[0]]]
            shares[link] = left[link] / _load(users[link]) if users[link] else math.inf
    return rates


def _users(
    routes: Sequence[Sequence[Hashable]], weights: Sequence[Sequence[float]] | None
) -> _Users:
    users: _Users = {}
    for flow, route in enumerate(routes):
        for place, link in enumerate(route):
            weight = 1.0 if weights is None else weights[flow][place]
            users.setdefault(link, []).append((flow, weight))
    return users


def _load(users: Sequence[tuple[int, float]]) -> float:
    return sum(weight for _, weight in users)
