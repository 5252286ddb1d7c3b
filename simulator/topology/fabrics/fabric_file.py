"""What every kind of fabric may say, and the last step of building one."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from simulator.errors import InputError, Problem
from simulator.files import FileRecord, nearest
from simulator.topology.context import Context
from simulator.topology.graph import FloatArray, Graph, IntArray
from simulator.topology.ports import plug
from simulator.topology.topology import Fabric, Unit

MAX_COUNT = 2**20
"""Of switches, ports or cables in one key: far above any cluster, and below what fills memory."""
_SEARCHED = 1000
"""Switches among which a misspelt name is looked for."""
_SHOWN = 8
"""Units that a message names."""
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]


class FabricFile(FileRecord):
    """What every kind of fabric may say."""

    reduces: bool = False
    """Whether its switches reduce (SHARP)."""
    failed: tuple[str, ...] = ()
    """Switches that are out of order, with all links and ports that are plugged into them."""


def finish(
    file: FabricFile, graph: Graph, attachment: IntArray, unit: Unit, context: Context
) -> Fabric:
    """Return the fabric of switches `graph`, with each port plugged in and failed switches dark.

    Raises:
        InputError: a failed switch is not there, or what fails leaves a unit alone.
    """
    bandwidth, latency = plug(unit, len(attachment), context)
    whole = Fabric(
        graph=graph,
        attachment=attachment,
        port_bandwidth=bandwidth,
        port_latency=latency,
        reduces=file.reduces,
    )
    return darkened(whole, file.failed)


def darkened(fabric: Fabric, failed: tuple[str, ...]) -> Fabric:
    """Return a fabric in which switches have failed.

    They stay as devices without links, since a port of a unit names where it is plugged in; such a
    port has 0 bytes/s.

    Raises:
        InputError: no such switch, or a unit that no port joins to the others any more.
    """
    if not failed:
        return fabric
    dark = _numbers(failed, fabric.graph)
    lost = np.isin(fabric.attachment, dark)
    port_bandwidth = np.where(lost, 0.0, fabric.port_bandwidth)
    _no_unit_alone(port_bandwidth)
    return replace(fabric, graph=_without(fabric.graph, dark), port_bandwidth=port_bandwidth)


def link_efficiency(unit: Unit, context: Context) -> float:
    """Return the share of the line rate that links of the fabric achieve.

    That of NICs; links between accelerators themselves (the ports of a torus) have their own rate.
    """
    return 1.0 if np.isin(unit.ports, unit.accelerators).all() else context.nic_efficiency


def _numbers(failed: tuple[str, ...], graph: Graph) -> IntArray:
    unknown = [
        Problem(
            key=f"fabric.failed.{place}",
            found=repr(name),
            rule="there is no such switch",
            fix=nearest(name, list(graph.devices[:_SEARCHED])),
        )
        for place, name in enumerate(failed)
        if name not in graph.number
    ]
    if unknown:
        raise InputError(*unknown)
    return np.array([graph.number[name] for name in failed], dtype=np.intp)


def _no_unit_alone(port_bandwidth: FloatArray) -> None:
    alone = np.flatnonzero((port_bandwidth == 0).all(axis=1))
    if not alone.size:
        return
    first = ", ".join(str(unit) for unit in alone[:_SHOWN])
    raise InputError(
        Problem(
            key="fabric.failed",
            found=f"{alone.size} units without a port, the first {first}",
            rule="each unit needs a port at a switch that works",
            fix="take their switches off the list, or these units out of the cluster",
        )
    )


def _without(graph: Graph, dark: IntArray) -> Graph:
    """Return a graph without the links that begin or end at one of the `dark` devices."""
    kept = ~(np.isin(graph.source, dark) | np.isin(graph.target, dark))
    return replace(
        graph,
        source=graph.source[kept],
        target=graph.target[kept],
        bandwidth=graph.bandwidth[kept],
        latency=graph.latency[kept],
    )
