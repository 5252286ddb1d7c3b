"""Measured seconds as rates, and what the machine's data sheet allows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from calibrate.points import (
    AttentionPoint,
    CollectivePoint,
    GemmPoint,
    HostCopyPoint,
    MemoryBoundPoint,
    Point,
)
from calibrate.predict import attention_shape
from simulator.hardware.profile import Profile
from simulator.parallel.groups import Collective, bus_factor

_BACKWARD_PRODUCTS = 2.5
"""FLOP of the backward pass of attention over those of the forward pass: five products to two."""
_FLOPS = 2.0
"""A multiplication and an addition."""


class RateUnit(StrEnum):
    """What a rate counts each second."""

    BYTES = "B/s"
    FLOPS = "FLOP/s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What was reached, and the nominal rate of the part of the machine that limits it."""

    value: float
    nominal: float | None
    """None where the data sheet says nothing."""
    unit: RateUnit

    @property
    def share(self) -> float | None:
        """Reached over nominal."""
        return self.value / self.nominal if self.nominal else None


def rate_of(point: Point, seconds: float, profile: Profile) -> Rate | None:
    """Return the rate that `seconds` for a point mean; None for kinds that have none.

    Collectives give their bus bandwidth (nccl-tests PERFORMANCE.md) beside the line rate.
    """
    gpu = profile.accelerator
    match point:
        case GemmPoint():
            work = _FLOPS * point.m * point.n * point.k
            return Rate(
                value=work / seconds, nominal=gpu.peak.get(point.dtype), unit=RateUnit.FLOPS
            )
        case AttentionPoint():
            work = attention_shape(point).flops * (_BACKWARD_PRODUCTS if point.backward else 1)
            return Rate(
                value=work / seconds, nominal=gpu.peak.get(point.dtype), unit=RateUnit.FLOPS
            )
        case MemoryBoundPoint():
            value, nominal = point.bytes / seconds, gpu.memory_bandwidth
        case HostCopyPoint():
            value, nominal = point.bytes / seconds, profile.node.host.pcie_bandwidth
        case CollectivePoint():
            value = bus_factor(point.collective, point.ranks) * point.bytes / seconds
            return Rate(value=value, nominal=line_rate(point, profile), unit=RateUnit.BYTES)
        case _:
            return None
    return Rate(value=value, nominal=nominal, unit=RateUnit.BYTES)


def line_rate(point: CollectivePoint, profile: Profile) -> float | None:
    """Return the bus bandwidth at which the slowest link of a collective is full, bytes/s.

    In a node that is the scale-up link of a rank. Over nodes a ring crosses a node's border once,
    so that all NICs its ranks can use carry it together; each of the r ranks on a node sends
    (n - r) / n of an all-to-all over them. None where the profile has no NIC.
    """
    node = profile.node
    if point.nodes == 1:
        return float(node.scale_up.bandwidth)
    if node.nic is None:
        return None
    each = point.ranks // point.nodes
    reached = max(1, each * node.nic.per_node // node.accelerators)
    border = min(reached, node.nic.per_node) * node.nic.bandwidth
    if point.collective is not Collective.ALL_TO_ALL:
        return float(border)
    return float(border / each * (point.ranks - 1) / (point.ranks - each))
