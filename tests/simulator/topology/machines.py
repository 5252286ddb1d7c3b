"""Topologies from small tables with round numbers, and oracles of what they join."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

from simulator.errors import InputError
from simulator.topology.build import build_topology, load_topology
from simulator.topology.context import Context
from simulator.topology.topology import Topology
from simulator.topology.topology_file import parse_topology
from simulator.topology.whole import device_count, in_units, link_ends

GB = 1e9
_GRAIN = 1e5
"""Bytes/s to which the largest flow is found: it counts in integers."""
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "topologies"
WIDTH, UNITS_BUILT = 4, 4
CONTEXT = Context(
    accelerators=WIDTH,
    domain=WIDTH,
    scale_up_bandwidth=300 * GB,
    scale_up_latency=2e-6,
    torus_axes=2,
    nics=WIDTH,
    nic_bandwidth=50 * GB,
    nic_efficiency=0.9,
    nic_latency=4e-6,
    host_bandwidth=60 * GB,
)

SMALLEST_UNITS: dict[str, dict[str, Any]] = {
    "nvswitch": {},
    "mesh": {},
    "pcie": {},
    "graph": {
        "accelerators": ["a", "b", "c", "d"],
        "nics": ["north", "south"],
        "switches": ["middle"],
        "cable": [
            {"ends": [name, "middle"], "bandwidth": "60 GB/s"}
            for name in ("a", "b", "c", "d", "north", "south")
        ],
    },
    "bare": {},
}
"""The least that each kind of unit needs to be one of 4 accelerators."""

SMALLEST_FABRICS: dict[str, dict[str, Any]] = {
    "fat-tree": {"tiers": [{"joins": 2}, {}]},
    "rail-optimised": {"tiers": [{"joins": 2}, {}]},
    "dragonfly": {"routers": 2, "ports": 2, "global_links": 2},
    "torus": {"shape": [4, 4], "bandwidth": "50 GB/s"},
    "flat": {},
    "wan": {
        "site": [
            {"name": name, "units": 2, "fabric": {"kind": "flat"}, "gateway": ["switch"]}
            for name in ("east", "west")
        ],
        "link": [{"ends": ["east", "west"], "bandwidth": "10 GB/s", "latency": "1 ms"}],
    },
    "graph": {"switches": ["lan"], "attachment": [{"switch": "lan", "units": "0-3"}]},
}
"""The least that each kind of fabric needs to join 4 units (of 4 ports, where it counts them)."""


def table(unit: Mapping[str, Any], fabric: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the table of a topology's file."""
    whole = {"title": "small", "unit": dict(unit)}
    return whole if fabric is None else whole | {"fabric": dict(fabric)}


def smallest(unit: str, fabric: str) -> dict[str, Any]:
    """Return the table of the smallest topology of two kinds."""
    inside = SMALLEST_FABRICS[fabric]
    if fabric == "torus" and unit == "graph":
        inside = inside | {"shape": [2, 4]}
    return table(
        {"kind": unit, **SMALLEST_UNITS[unit]},
        {"kind": fabric, **inside},
    )


def built(given: Mapping[str, Any], units: int = 1, context: Context = CONTEXT) -> Topology:
    """Return the topology of a table."""
    return build_topology(parse_topology(given, "net.toml"), context, units)


def problems_of(given: Mapping[str, Any], units: int = 1, context: Context = CONTEXT) -> list[str]:
    """Return what is wrong with a table."""
    with pytest.raises(InputError) as caught:
        built(given, units, context)
    return [str(problem) for problem in caught.value.problems]


def example(name: str) -> Topology:
    """Return one of the shipped examples."""
    return load_topology(EXAMPLES / f"{name}.toml")


def accelerators(topology: Topology) -> np.ndarray:
    """Return the devices that are accelerators, in the order of ranks."""
    return in_units(topology, topology.unit.accelerators).ravel()


def reached(topology: Topology, start: int) -> set[int]:
    """Return all devices that links with capacity lead to, one after the other."""
    source, target = link_ends(topology)
    following: dict[int, list[int]] = {}
    for one, other, bandwidth in zip(source, target, topology.capacity, strict=True):
        if bandwidth > 0:
            following.setdefault(int(one), []).append(int(other))
    found, waiting = {start}, deque([start])
    while waiting:
        for device in following.get(waiting.popleft(), []):
            if device not in found:
                found.add(device)
                waiting.append(device)
    return found


def cut(topology: Topology, left: Iterable[int], right: Sequence[int]) -> float:
    """Return bytes/s that accelerators on the left can send to those on the right in all.

    It is the largest flow from all on the left to all on the right, whatever the way.
    """
    everything = accelerators(topology)
    source, target = link_ends(topology)
    begin, end = device_count(topology), device_count(topology) + 1
    unlimited = 10**9
    outer = [(begin, int(everything[i]), unlimited) for i in left]
    outer += [(int(everything[i]), end, unlimited) for i in right]
    rates = np.round(topology.capacity / _GRAIN).astype(np.int32)
    one = np.concatenate([source, [edge[0] for edge in outer]])
    other = np.concatenate([target, [edge[1] for edge in outer]])
    rate = np.concatenate([rates, [edge[2] for edge in outer]]).astype(np.int32)
    graph = coo_array((rate, (one, other)), shape=(end + 1, end + 1)).tocsr()
    return float(maximum_flow(graph, begin, end).flow_value) * _GRAIN
