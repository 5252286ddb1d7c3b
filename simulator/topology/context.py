"""What is known of a machine's links, which a topology file need not say again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import Field

from simulator.errors import InputError, Problem
from simulator.files import FileRecord
from simulator.hardware.profile import Profile
from simulator.units import Bandwidth, Seconds

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the profile says, or the file's `[nic]` in its place; None where neither does."""

    accelerators: int | None = None
    """Of one node."""
    domain: int | None = None
    """Accelerators of one scale-up domain."""
    scale_up_bandwidth: float | None = None
    """Nominal, of one accelerator, all its links together, bytes/s, one direction."""
    scale_up_latency: float | None = None
    """Accelerator to accelerator, one message, seconds."""
    torus_axes: int | None = None
    """Axes of the torus that accelerators form by themselves (TPU)."""
    nics: int | None = None
    """Of one node; None where it has none."""
    nic_bandwidth: float | None = None
    """Nominal, of one NIC, bytes/s, one direction."""
    nic_efficiency: float = 1.0
    """Share of the line rate that large messages achieve, on NIC cables and in the fabric."""
    nic_latency: float | None = None
    """NIC to NIC through the fabric, one message, seconds."""
    host_bandwidth: float | None = None
    """Nominal, host to one accelerator (PCIe), bytes/s, one direction."""

    @property
    def nic_rate(self) -> float | None:
        """Bytes/s that large messages achieve on one NIC's cable, one direction."""
        return None if self.nic_bandwidth is None else self.nic_bandwidth * self.nic_efficiency

    @property
    def cable_latency(self) -> float | None:
        """Seconds of one message on one NIC's cable: a message passes two of them."""
        return None if self.nic_latency is None else self.nic_latency / 2

    @property
    def link_latency(self) -> float | None:
        """Seconds of one message between an accelerator and a switch: it passes two of them."""
        return None if self.scale_up_latency is None else self.scale_up_latency / 2


class NicFile(FileRecord):
    """The network cards of a node; what is left out is what the profile says."""

    per_node: int | None = Field(default=None, ge=1)
    """Cards of one node."""
    bandwidth: Bandwidth | None = None
    """Nominal, of one card and direction."""
    efficiency: float | None = Field(default=None, gt=0, le=1)
    """Share of the line rate that large messages achieve, on cards and in the fabric."""
    latency: Seconds | None = None
    """Card to card through the fabric, one message."""


def context_of(profile: Profile) -> Context:
    """Return what a profile says of the links of its machine."""
    node = profile.node
    known = Context(
        accelerators=node.accelerators,
        domain=node.scale_up.domain_size,
        scale_up_bandwidth=node.scale_up.bandwidth,
        scale_up_latency=node.scale_up.latency,
        torus_axes=node.scale_up.axes,
        host_bandwidth=node.host.pcie_bandwidth,
    )
    if node.nic is None:
        return known
    return replace(
        known,
        nics=node.nic.per_node,
        nic_bandwidth=node.nic.bandwidth,
        nic_efficiency=node.nic.efficiency,
        nic_latency=node.nic.latency,
    )


def with_nic(context: Context, nic: NicFile | None) -> Context:
    """Return the context with the cards that a topology file describes."""
    if nic is None:
        return context
    return replace(
        context,
        nics=context.nics if nic.per_node is None else nic.per_node,
        nic_bandwidth=context.nic_bandwidth if nic.bandwidth is None else nic.bandwidth,
        nic_efficiency=context.nic_efficiency if nic.efficiency is None else nic.efficiency,
        nic_latency=context.nic_latency if nic.latency is None else nic.latency,
    )


def known(given: Number | None, profile: Number | None, key: str) -> Number:
    """Return what the file says under `key`, or else what the profile does.

    Raises:
        InputError: neither does.
    """
    if given is not None:
        return given
    if profile is not None:
        return profile
    raise InputError(
        Problem(
            key=key,
            rule="is needed: neither the file nor a profile says it",
            fix=f"write {key} in the file, or name a profile",
        )
    )
