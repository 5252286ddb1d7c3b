"""Max-min fair sharing of links between flows, each with a cap of its own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence


def max_min_rates(
    routes: Sequence[Sequence[Hashable]], caps: Sequence[float], capacity: Mapping[Hashable, float]
) -> list[float]:
    """Return the rate of each flow in bytes/s: progressive filling.

    All rates rise together; a flow stops at its cap or when one of its links is full. No flow can
    then gain without another, that has no more, losing.

    >>> max_min_rates([["a"], ["a", "b"], ["b"]], [9.0, 9.0, 9.0], {"a": 4.0, "b": 10.0})
    [2.0, 2.0, 8.0]

    Source: Bertsekas and Gallager, Data Networks, section 6.5.2.
    """
    rates = list(caps)
    open_flows = set(range(len(routes)))
    left = dict(capacity)
    loads: dict[Hashable, int] = {}
    for route in routes:
        for link in route:
            loads[link] = loads.get(link, 0) + 1
    while open_flows:
        share, full = min(
            ((left[link] / n, link) for link, n in loads.items() if n),
            default=(None, None),
            key=lambda item: item[0],
        )
        lowest = min(open_flows, key=lambda flow: caps[flow])
        if share is None or caps[lowest] <= share:
            stopped, rate = [lowest], caps[lowest]
        else:
            stopped, rate = [flow for flow in open_flows if full in routes[flow]], share
        for flow in stopped:
            rates[flow] = rate
            open_flows.remove(flow)
            for link in routes[flow]:
                left[link] = max(0.0, left[link] - rate)
                loads[link] -= 1
    return rates
