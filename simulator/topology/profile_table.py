"""A profile's `[node]` and `[fabric]` as the table of a topology file."""

from __future__ import annotations

from math import ceil
from typing import Any, assert_never

from simulator.errors import InputError, Problem, UnsupportedError
from simulator.hardware.cluster import FabricKind, ScaleUpKind
from simulator.hardware.profile import Profile
from simulator.topology.shapes import balanced_shape, block_shape
from simulator.units import Dimension, format_quantity

Table = dict[str, Any]


def profile_table(profile: Profile, nodes: int) -> Table:
    """Return the table of a topology of so many nodes; a unit is a scale-up domain.

    Where nodes fill no whole number of domains, each of as few as can be has an equal part of them:
    16 nodes of an NVL72 rack are one unit of 64 accelerators, 128 are eight. What the table leaves
    out is filled in from the profile, as for any file.

    Raises:
        InputError: domains or leaves cannot be filled evenly, or there is no NIC.
        UnsupportedError: more accelerators than one torus has.
    """
    title = f"{nodes} x {profile.name}"
    if profile.node.scale_up.kind is ScaleUpKind.TORUS:
        fabric = _accelerator_torus(profile, nodes)
        return {"title": title, "unit": {"kind": "bare"}, "fabric": fabric}
    width = _width(profile, nodes)
    table: Table = {"title": title, "unit": _unit(profile) | {"accelerators": width}}
    if nodes * profile.node.accelerators > width:
        _ = profile.nic_bandwidth
        table["fabric"] = _fabric(profile, nodes)
    return table


def _width(profile: Profile, nodes: int) -> int:
    """Return the accelerators of a unit."""
    node, domain = profile.node.accelerators, profile.node.scale_up.domain_size
    if domain <= node:
        return domain
    racks = ceil(nodes * node / domain)
    if nodes % racks:
        below, above = nodes // racks * racks, (nodes // racks + 1) * racks
        raise InputError(
            Problem(
                where=profile.name,
                key="nodes",
                found=str(nodes),
                rule=f"{racks} scale-up domains of {domain // node} nodes are filled evenly",
                fix=f"take {below if nodes - below <= above - nodes else above} nodes",
            )
        )
    return nodes // racks * node


def _unit(profile: Profile) -> Table:
    kind = profile.node.scale_up.kind
    match kind:
        case ScaleUpKind.NVSWITCH | ScaleUpKind.SHARED_MEMORY:
            return {"kind": "nvswitch"}
        case ScaleUpKind.NVLINK_MESH | ScaleUpKind.XGMI_MESH | ScaleUpKind.HCCS:
            return {"kind": "mesh"}
        case ScaleUpKind.PCIE:
            return {"kind": "pcie"}
        case ScaleUpKind.TORUS:
            return {"kind": "bare"}
        case _:
            assert_never(kind)


def _fabric(profile: Profile, nodes: int) -> Table:
    fabric = profile.fabric
    match fabric.kind:
        case FabricKind.FLAT:
            return {"kind": "flat"}
        case FabricKind.FAT_TREE | FabricKind.RAIL_OPTIMISED:
            return _tree(profile, nodes)
        case FabricKind.TORUS:
            raise UnsupportedError(
                Problem(
                    where=profile.name,
                    key="fabric.kind",
                    found="'torus'",
                    rule="a profile does not say the shape of a torus of nodes",
                    fix='write a topology file with [fabric] kind = "torus" and its shape',
                )
            )
        case _:
            assert_never(fabric.kind)


def _tree(profile: Profile, nodes: int) -> Table:
    """Return leaves of `nodes_per_leaf` nodes, and one tier above them where one leaf is too few.

    Oversubscription is the leaves'; all above them is as wide as they are.
    """
    fabric, node = profile.fabric, profile.node
    kind = str(fabric.kind)
    per_unit = node.scale_up.domain_size / node.accelerators
    joins = fabric.nodes_per_leaf / per_unit
    if not joins.is_integer():
        raise InputError(_no_whole_leaf(profile, per_unit))
    above = {"joins": int(joins), "oversubscription": fabric.oversubscription}
    if fabric.kind is FabricKind.FAT_TREE and nodes <= fabric.nodes_per_leaf:
        return {"kind": kind, "tiers": [{}]}
    return {"kind": kind, "tiers": [above, {}]}


def _no_whole_leaf(profile: Profile, per_unit: float) -> Problem:
    found = profile.fabric.nodes_per_leaf
    return Problem(
        where=profile.name,
        key="fabric.nodes_per_leaf",
        found=str(found),
        rule=f"a unit is {per_unit:g} nodes, and units are plugged into a leaf as a whole",
        fix=f"take {int(max(1, found // per_unit) * per_unit)}",
    )


def _accelerator_torus(profile: Profile, nodes: int) -> Table:
    scale_up, width = profile.node.scale_up, profile.node.accelerators
    chips = nodes * width
    if scale_up.axes is None:
        raise InputError(
            Problem(
                where=profile.name,
                key="node.scale_up.axes",
                rule='is needed where kind = "torus": the axes of the torus',
                fix="write axes = 3, or 2",
            )
        )
    if chips > scale_up.domain_size:
        raise UnsupportedError(
            Problem(
                where=profile.name,
                key="nodes",
                found=f"{chips} accelerators",
                rule=f"one torus has at most {scale_up.domain_size}; several are not joined here",
                fix=f"take {scale_up.domain_size // width} nodes or fewer",
            )
        )
    shape = balanced_shape(chips, scale_up.axes)
    closed = [side % (scale_up.ring or 1) == 0 for side in shape]
    if scale_up.rings_together:
        closed = [all(closed)] * len(shape)
    table: Table = {
        "kind": "torus",
        "shape": list(shape),
        "wrap": closed,
        "latency": format_quantity(scale_up.latency, Dimension.TIME),
    }
    block = block_shape(width, shape)
    return table | ({"unit_shape": list(block)} if block else {})
