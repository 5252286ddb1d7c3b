"""What ASTRA-sim needs beside traces: network, system layer and memory, as far as they are known.

Source: ASTRA-sim 2.x, examples/network/analytical, examples/system/native_collectives and
astra-sim/system/Sys.cc (keys and units); astra-network-analytical, common/NetworkFunction.cc (its
GB is 2**30 bytes) and congestion_unaware Switch.cc (a message through a switch makes two hops).
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from simulator.hardware.cluster import ScaleUpKind
from simulator.hardware.profile import Profile
from simulator.interchange.export import StepTrace
from simulator.interchange.records import NodeKind
from simulator.parallel.groups import Collective
from simulator.units import GB, GIB

NETWORK_FILE, SYSTEM_FILE, MEMORY_FILE = "network.yml", "system.json", "remote_memory.json"
_SWITCH, _FULL = "Switch", "FullyConnected"
_SWITCH_HOPS = 2
_NANOSECONDS = 1e9
_TOPOLOGIES = {
    ScaleUpKind.NVSWITCH: _SWITCH,
    ScaleUpKind.NVLINK_MESH: _FULL,
    ScaleUpKind.XGMI_MESH: _FULL,
    ScaleUpKind.HCCS: _FULL,
}
"""Scale-up domains that ASTRA-sim's building blocks can stand for."""


class _Dimension(NamedTuple):
    """One dimension of ASTRA-sim's network."""

    topology: str
    npus: int
    bandwidth: float
    """Of one link, bytes/s."""
    latency: float
    """Of one hop, seconds."""


def astra_sim_files(profile: Profile, trace: StepTrace) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the text of each file, and what cannot be said or run there."""
    dimensions, notes = _dimensions(profile, trace.world_size)
    notes += _refused(trace)
    files = {MEMORY_FILE: _json({"memory-type": "NO_MEMORY_EXPANSION"})}
    if dimensions:
        files[NETWORK_FILE] = _network(dimensions)
        files[SYSTEM_FILE] = _json(_system(profile, len(dimensions)))
    return files, tuple(notes)


def _dimensions(profile: Profile, world: int) -> tuple[list[_Dimension], list[str]]:
    scale_up, nic = profile.node.scale_up, profile.node.nic
    kind = _TOPOLOGIES.get(scale_up.kind)
    size = min(scale_up.domain_size, world)
    if size > 1 and kind is None:
        missing = f"its building blocks have none for {scale_up.kind.value}"
        return [], [f"no {NETWORK_FILE} for ASTRA-sim: {missing}"]
    if world % size:
        return [], [f"no {NETWORK_FILE} for ASTRA-sim: {world} ranks fill no domains of {size}"]
    found, notes = [], []
    if size > 1:
        assert kind is not None
        found.append(_dimension(kind, size, scale_up.bandwidth, scale_up.latency))
    if world > size:
        assert nic is not None, "the scenario has been checked"
        found.append(_dimension(_SWITCH, world // size, profile.nic_bandwidth, nic.latency))
    if world > size and profile.fabric.oversubscription > 1:
        notes.append(f"{NETWORK_FILE} leaves out that the fabric is oversubscribed")
    if len(found) > 1:
        notes.append("ASTRA-sim runs several dimensions with its congestion-unaware network only")
    return found, notes


def _dimension(kind: str, npus: int, bandwidth: float, latency: float) -> _Dimension:
    """Return a dimension in which each of `npus` has `bandwidth` in all and reaches another."""
    if kind == _FULL:
        return _Dimension(kind, npus, bandwidth / max(1, npus - 1), latency)
    return _Dimension(kind, npus, bandwidth, latency / _SWITCH_HOPS)


def _network(dimensions: list[_Dimension]) -> str:
    """Return the network in ASTRA-sim's units: 2**30 bytes/s and nanoseconds."""
    rows: dict[str, list[Any]] = {
        "topology": [each.topology for each in dimensions],
        "npus_count": [each.npus for each in dimensions],
        "bandwidth": [each.bandwidth / GIB for each in dimensions],
        "latency": [each.latency * _NANOSECONDS for each in dimensions],
    }
    return "".join(f"{key}: [ {', '.join(map(_shown, values))} ]\n" for key, values in rows.items())


def _shown(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _system(profile: Profile, dimensions: int) -> dict[str, Any]:
    """Return a system layer that adds nothing of its own: no delays, no splitting, rings."""
    rings = ["ring"] * dimensions
    return {
        "scheduling-policy": "FIFO",
        "endpoint-delay": 0,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1,
        "all-reduce-implementation": rings,
        "all-gather-implementation": rings,
        "reduce-scatter-implementation": rings,
        "all-to-all-implementation": rings,
        "collective-optimization": "localBWAware",
        "local-mem-bw": profile.accelerator.memory_bandwidth / GB,
        "boost-mode": 0,
        "roofline-enabled": 0,
    }


def _refused(trace: StepTrace) -> list[str]:
    """Return what of the trace ASTRA-sim does not run as it is meant."""
    nodes = [node.node for stage in trace.stages for node in stage]
    notes = []
    if any(node.collective is Collective.REDUCE for node in nodes):
        notes.append("ASTRA-sim refuses reductions to one rank (parameter server)")
    if any(node.collective is Collective.BROADCAST for node in nodes):
        notes.append("ASTRA-sim replays broadcasts for the time that the trace says")
    if any(node.kind in (NodeKind.LOAD, NodeKind.STORE) for node in nodes):
        notes.append(
            f"ASTRA-sim needs the speed of host memory, which {MEMORY_FILE} has no value for"
        )
    if any(node.on_request for node in nodes):
        notes.append("ASTRA-sim sends at once what this software sends when it is asked for")
    return notes


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=2, allow_nan=False) + "\n"
