"""Bytes/s of one link by its generation, and what a machine's total implies for each link."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.errors import InputError, Problem
from simulator.hardware.cluster import ScaleUpKind
from simulator.topology.imports.records import ImportOptions
from simulator.units import GB

SWITCH = "nvswitch"
"""The device that all NVSwitches of a node are."""
NVLINK = {
    "NVLink 1": 20 * GB,
    "NVLink 2": 25 * GB,
    "NVLink 3": 25 * GB,
    "NVLink 3 of GA102": 14.0625 * GB,
    "NVLink 4": 25 * GB,
    "NVLink 5": 50 * GB,
}
"""Bytes/s of one link, one direction.

Source: half of what NVIDIA publishes for both directions: 40 GB/s (P100 white paper), 50 GB/s
(V100, A100 and H100 white papers), 112.5 GB/s over four links (GA102 white paper), 100 GB/s
(Blackwell architecture brief, 1.8 TB/s over 18 links)."""
NVLINK_OF_SM = {
    60: "NVLink 1",
    70: "NVLink 2",
    75: "NVLink 2",
    80: "NVLink 3",
    86: "NVLink 3 of GA102",
    90: "NVLink 4",
    100: "NVLink 5",
    103: "NVLink 5",
}
"""Generation of the links by the compute capability of the accelerator, times ten.

Source: CUDA C programming guide, compute capabilities, and the white papers above."""
MOST_LINKS = 18
"""NVLinks that an accelerator has at most, of any generation above: H100 and B200."""
_LINKED = (ScaleUpKind.NVSWITCH, ScaleUpKind.NVLINK_MESH)
SAME = 0.01
"""Data sheets round: bandwidths this close are one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """Whether links lead to a switch or from accelerator to accelerator, and their rate."""

    switched: bool
    rate: float
    """Bytes/s of one link, one direction."""


def generation(rate: float) -> str:
    """Return the generations of NVLink that have this rate a link, or nothing.

    >>> generation(450e9 / 18)
    'NVLink 2, 3 or 4'
    """
    names = [name for name, of_link in NVLINK.items() if abs(rate / of_link - 1) <= SAME]
    numbers = [name.removeprefix("NVLink ") for name in names]
    *most, last = numbers or [""]
    if not names:
        return ""
    return f"NVLink {', '.join(most)} or {last}" if most else f"NVLink {last}"


def nvlink_wiring(
    *, pair: int, row: int, alike: bool, options: ImportOptions, where: str
) -> Wiring:
    """Return how accelerators are joined that count `pair` links to a peer and `row` to all peers.

    Behind an NVSwitch an accelerator counts all its links to every peer; in a mesh each pair has
    its own. The accelerator's bandwidth in the profile tells them apart, since a link has one of a
    few rates: 450 GB/s is 18 links behind a switch, or 3 x 6 in a mesh, of 25 GB/s. `alike` says
    whether all pairs have as many links, which a switch needs.

    Raises:
        InputError: nothing says the rate of a link, or no generation has what the profile implies.
    """
    scale_up = options.profile.node.scale_up if options.profile else None
    linked = scale_up is not None and scale_up.kind in _LINKED
    if options.link is not None:
        owned = scale_up.bandwidth / options.link if scale_up and linked else MOST_LINKS
        return Wiring(switched=alike and row > owned * (1 + SAME), rate=options.link)
    if scale_up is None or options.profile is None or not linked:
        raise InputError(_unknown_rate(where, options))
    switched, mesh = scale_up.bandwidth / pair, scale_up.bandwidth / row
    prefers_mesh = scale_up.kind is ScaleUpKind.NVLINK_MESH and bool(generation(mesh))
    if alike and generation(switched) and not prefers_mesh:
        return Wiring(switched=row > pair, rate=switched)
    if generation(mesh):
        return Wiring(switched=False, rate=mesh)
    raise InputError(_no_generation(where, options.profile.name, scale_up.bandwidth, pair, row))


def slot_latency(options: ImportOptions) -> float:
    """Return seconds of one message on an accelerator's PCIe link.

    Half of the profile's from accelerator to accelerator where they meet over PCIe; else nothing,
    since the profile's latency from NIC to NIC is that of the whole way.
    """
    scale_up = options.profile.node.scale_up if options.profile else None
    over_pcie = scale_up is not None and scale_up.kind is ScaleUpKind.PCIE
    return scale_up.latency / 2 if scale_up and over_pcie else 0.0


def _unknown_rate(where: str, options: ImportOptions) -> Problem:
    named = options.profile.name if options.profile else ""
    return Problem(
        where=where,
        found=f"profile {named}, whose accelerators have no NVLink" if named else "no profile",
        rule="has NVLinks, and nothing says how fast one is",
        fix="--profile with the name of the machine, or --link-bandwidth with the bytes/s of "
        f"one link and direction ({_rates()})",
    )


def _no_generation(where: str, name: str, total: float, pair: int, row: int) -> Problem:
    return Problem(
        where=where,
        found=f"{total / GB:g} GB/s an accelerator in profile {name}, {pair} links to a peer",
        rule=f"neither {total / pair / GB:.4g} GB/s a link (behind a switch) nor "
        f"{total / row / GB:.4g} GB/s (a mesh with {row} links an accelerator) is what a "
        f"generation of NVLink has ({_rates()})",
        fix="the profile of this machine, or --link-bandwidth",
    )


def _rates() -> str:
    each = sorted({rate / GB for rate in NVLINK.values()})
    return ", ".join(f'"{rate:g} GB/s"' for rate in each)
