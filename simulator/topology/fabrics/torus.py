"""A torus or mesh of any number of dimensions, one router a port."""

from __future__ import annotations

import re
from math import prod
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from simulator.errors import InputError, Problem
from simulator.topology.context import Context, known
from simulator.topology.fabrics.fabric_file import Count, FabricFile, finish, link_efficiency
from simulator.topology.fabrics.wiring import Cables, wire
from simulator.topology.graph import Graph, IntArray
from simulator.topology.topology import Fabric, Unit
from simulator.units import Bandwidth, Seconds

MAX_DIMENSIONS = 8
"""More than any torus that has been built (Tofu has six)."""
_Shape = Annotated[tuple[Count, ...], Field(min_length=1, max_length=MAX_DIMENSIONS)]
_ROUTER = re.compile(r"r\d+(\.\d+)*")


class TorusFile(FabricFile):
    """A torus: each port has a router with a link to the next one both ways in each dimension.

    Ports are accelerators (a TPU pod: kind "bare" of unit) or NICs. Router "r2.0.1" is at 2 in the
    first dimension, 0 in the second, 1 in the third; ports fill the first dimension first.
    """

    shape: _Shape
    """Routers in each dimension; their product is the number of ports."""
    wrap: tuple[bool, ...] | None = None
    """Whether each dimension closes to a ring (torus) or not (mesh); by default all do. A ring of
    two has both of its cables."""
    unit_shape: _Shape | None = None
    """Block of routers that one unit's ports have; by default they lie in a row."""
    bandwidth: Bandwidth | None = None
    """Nominal, of one link and direction. By default an accelerator's share of its scale-up
    bandwidth, where ports are accelerators; else that of a NIC."""
    latency: Seconds = 0.0
    """Of one message on a link, besides those of its ports."""

    @model_validator(mode="after")
    def _one_each(self) -> Self:
        for key in ("wrap", "unit_shape"):
            given = getattr(self, key)
            if given is not None and len(given) != len(self.shape):
                raise ValueError(
                    f"{key} has {len(given)} entries and shape {len(self.shape)}: one a dimension"
                )
        if any(all_ % part for all_, part in zip(self.shape, self.unit_shape or (), strict=False)):
            raise ValueError(f"blocks of {self.unit_shape} do not fill a shape of {self.shape}")
        return self


def torus(file: TorusFile, units: int, unit: Unit, context: Context) -> Fabric:
    """Return a torus whose routers have one port each.

    A cut in half across a dimension of k routers cuts 2 N / k links of N routers; of a mesh N / k.

    Raises:
        InputError: the shape has more or fewer routers than there are ports.
    """
    ports = len(unit.ports)
    _check_counts(file, units, ports)
    names = [f"r{'.'.join(map(str, place))}" for place in _places(file.shape)]
    rate = _nominal(file, unit, context) * link_efficiency(unit, context)
    bundles = [_ring(file, dimension, rate) for dimension in range(len(file.shape))]
    attachment = _routers_of_ports(file, units, ports)
    return finish(file, wire(names, bundles), attachment, unit, context)


def coordinates(graph: Graph) -> IntArray | None:
    """Return (devices, dimensions) where each router of a torus lies; None of another fabric."""
    if not all(_ROUTER.fullmatch(name) for name in graph.devices):
        return None
    return np.array([[int(part) for part in name[1:].split(".")] for name in graph.devices])


def _places(shape: tuple[int, ...]) -> list[list[int]]:
    """Return the coordinates of each router, the first dimension fastest."""
    found = np.unravel_index(np.arange(prod(shape)), shape, order="F")
    return [[int(part) for part in place] for place in zip(*found, strict=True)]


def _ring(file: TorusFile, dimension: int, rate: float) -> Cables:
    """Return the cables of one dimension, from each router to the next one up."""
    numbers = np.arange(prod(file.shape), dtype=np.intp).reshape(file.shape, order="F")
    following = np.roll(numbers, -1, axis=dimension)
    closed = file.shape[dimension] > 1 and (file.wrap is None or file.wrap[dimension])
    last = slice(None) if closed else slice(0, -1)
    part = (slice(None),) * dimension + (last,)
    return Cables(
        one=numbers[part].ravel(order="F"),
        other=following[part].ravel(order="F"),
        bandwidth=rate,
        latency=file.latency,
    )


def _routers_of_ports(file: TorusFile, units: int, ports: int) -> IntArray:
    if file.unit_shape is None:
        return np.arange(units * ports, dtype=np.intp).reshape(units, ports)
    blocks = tuple(n // part for n, part in zip(file.shape, file.unit_shape, strict=True))
    corner = np.array(np.unravel_index(np.arange(units), blocks, order="F"))
    inside = np.array(np.unravel_index(np.arange(ports), file.unit_shape, order="F"))
    place = corner[:, :, None] * np.array(file.unit_shape)[:, None, None] + inside[:, None, :]
    return np.asarray(np.ravel_multi_index(tuple(place), file.shape, order="F"), dtype=np.intp)


def _nominal(file: TorusFile, unit: Unit, context: Context) -> float:
    """Return bytes/s of a link: of an accelerator's links, one in each direction of each axis."""
    if file.bandwidth is not None:
        return float(file.bandwidth)
    if not np.isin(unit.ports, unit.accelerators).all():
        return known(None, context.nic_bandwidth, "fabric.bandwidth")
    axes = context.torus_axes or len(file.shape)
    return known(None, context.scale_up_bandwidth, "fabric.bandwidth") / (2 * axes)


def _check_counts(file: TorusFile, units: int, ports: int) -> None:
    shape = " x ".join(map(str, file.shape))
    problems = []
    if prod(file.shape) != units * ports:
        rule = f"{units} units of {ports} ports need {units * ports} routers, one a port"
        found = f"{shape} = {prod(file.shape)} routers"
        fix = f"take a shape whose product is {units * ports}"
        problems.append(Problem(key="fabric.shape", found=found, rule=rule, fix=fix))
    if file.unit_shape is not None and prod(file.unit_shape) != ports:
        rule = f"the block of a unit has one router for each of its {ports} ports"
        found = " x ".join(map(str, file.unit_shape))
        fix = f"take a unit_shape whose product is {ports}"
        problems.append(Problem(key="fabric.unit_shape", found=found, rule=rule, fix=fix))
    if problems:
        raise InputError(*problems)
