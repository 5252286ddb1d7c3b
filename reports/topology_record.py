"""A topology, and routes on it, as plain values: bytes/s in one direction, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simulator.errors import InputError, Problem
from simulator.topology.facts import CableClass, TopologyFacts, topology_facts
from simulator.topology.routing import Router
from simulator.topology.topology import Topology
from simulator.topology.whole import in_units, link_ends

Record = dict[str, Any]


def topology_record(topology: Topology, pairs: Sequence[tuple[int, int]] = ()) -> Record:
    """Return a topology in numbers, with the route of each pair of accelerators.

    Raises:
        InputError: a pair names an accelerator that is not there, or is not connected.
    """
    facts = topology_facts(topology)
    return {
        "title": facts.title,
        "units": facts.units,
        "accelerators_per_unit": facts.width,
        "accelerators": facts.accelerators,
        "ports_per_unit": facts.ports,
        "devices_per_unit": facts.devices,
        "unit_cables": [_cable(cable) for cable in facts.unit_cables],
        "port_cables": [_cable(cable) for cable in facts.port_cables],
        "fabric_cables": [_cable(cable) for cable in facts.fabric_cables],
        "tiers": _tiers(facts),
        "half_to_half_bandwidth": facts.half,
        "switches_passed_at_most": facts.switches_passed,
        "all_switches_looked_at": facts.exact,
        "switches_reduce": facts.reduces,
        "routes": _routes(topology, pairs),
    }


def _cable(cable: CableClass) -> Record:
    return {"ends": cable.ends, "count": cable.count, "bandwidth": cable.bandwidth}


def _tiers(facts: TopologyFacts) -> list[Record]:
    return [
        {
            "tier": tier.number,
            "switches": tier.switches,
            "bandwidth_from_below": tier.into,
            "bandwidth_across": tier.across,
            "bandwidth_to_above": tier.out,
            "oversubscription": tier.oversubscription,
        }
        for tier in facts.tiers
    ]


def _routes(topology: Topology, pairs: Sequence[tuple[int, int]]) -> list[Record]:
    wrong = [
        Problem(
            key="--pair",
            found=f"{one} {other}",
            rule=f"accelerators are numbered 0 to {topology.size - 1}",
        )
        for one, other in pairs
        if not (0 <= one < topology.size and 0 <= other < topology.size)
    ]
    if wrong:
        raise InputError(*wrong)
    router = Router(topology)
    return [_route(router, one, other) for one, other in pairs]


def _route(router: Router, one: int, other: int) -> Record:
    topology, ends = router.topology, (np.array([one]), np.array([other]))
    links = _in_order(topology, one, router.route(one, other)) if one != other else []
    return {
        "from": accelerator_name(topology, one),
        "to": accelerator_name(topology, other),
        "links": [
            {
                "link": topology.link_name(link),
                "bandwidth": float(topology.capacity[link]),
                "share": share,
            }
            for link, share in links
        ],
        "hops": float(router.hops(*ends)[0]) if links else 0.0,
        "latency_s": float(router.latency(*ends)[0]) if links else 0.0,
        "bandwidth": min((float(topology.capacity[link]) / s for link, s in links), default=None),
    }


def _in_order(
    topology: Topology, start: int, links: list[tuple[int, float]]
) -> list[tuple[int, float]]:
    """Return the links of a route from its beginning to its end."""
    source, target = link_ends(topology)
    unit, inside = divmod(start, topology.width)
    device = int(in_units(topology, topology.unit.accelerators)[unit, inside])
    ahead = {link: share for link, share in links if share > 0}
    reached, ordered = {device}, []
    while ahead:
        here = [link for link in ahead if int(source[link]) in reached] or list(ahead)
        ordered += [(link, ahead.pop(link)) for link in here]
        reached |= {int(target[link]) for link in here}
    return ordered


def accelerator_name(topology: Topology, number: int) -> str:
    """Return how reports name an accelerator: "node3/gpu1"."""
    unit, inside = divmod(number, topology.width)
    return f"node{unit}/{topology.unit.graph.devices[topology.unit.accelerators[inside]]}"
