"""By which port bytes leave the sender's unit, and by which they enter the receiver's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.topology.graph import FloatArray, IntArray
from simulator.topology.routes.arcs import BoolArray
from simulator.topology.routes.inside import Inside, near
from simulator.topology.topology import Unit

NO_PORT = -1
_OWN_RAIL, _RELAY, _OWN, _OTHER, _NEVER = range(5)
"""What a sender's port is to it, best first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """A unit as the choice of ports sees it."""

    inside: Inside
    rail: IntArray
    """(ports,) the first port of the unit that is plugged into the same switch."""
    up: IntArray
    """(ports,) the part of the fabric that the port sends into; `NO_PORT` where it has failed."""
    down: IntArray
    """(ports,) the part of the fabric that the port receives from."""

    @property
    def to_port(self) -> FloatArray:
        """(accelerators, ports) cost of the way to each port."""
        return self.inside.cost[np.ix_(self.inside.accelerator, self.inside.port)]

    @property
    def from_port(self) -> FloatArray:
        """(accelerators, ports) cost of the way from each port."""
        return self.inside.cost[np.ix_(self.inside.port, self.inside.accelerator)].T


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """(accelerators, accelerators, lanes) ports between each sender and receiver."""

    leave: IntArray
    """Port of the sender's unit; `NO_PORT` where nothing connects the two."""
    enter: IntArray
    """Port of the receiver's unit."""


def own_ports(unit: Unit, inside: Inside) -> list[IntArray]:
    """Return the ports that each accelerator uses by itself: one, or several equally near ones.

    The first is that of its affinity. Ports that are no accelerator's affinity belong to those that
    reach them as cheaply as their own: two NICs an accelerator share its traffic half and half.
    A unit without ports has `NO_PORT` in their place.
    """
    if not len(unit.ports):
        return [np.full(1, NO_PORT) for _ in unit.accelerators]
    cost = inside.cost[np.ix_(inside.accelerator, inside.port)]
    spare = np.setdiff1d(np.arange(len(unit.ports)), unit.affinity)
    own = []
    for costs, mine in zip(cost, unit.affinity, strict=True):
        more = spare[near(costs[spare], np.full(len(spare), costs[mine]))]
        own.append(np.concatenate([[mine], more]).astype(np.intp))
    return own


def choose_ports(source: Side, target: Side, own: Sequence[IntArray], relay: bool) -> Choice:
    """Return the ports between each accelerator of one unit and each of another.

    The receiver's port is its own; the sender's is its own if that is on the same rail; else, with
    `relay`, that of an accelerator on the rail which the sender reaches more cheaply than its own
    port (PXN: over NVLink, then along the rail); else its own, and the fabric crosses rails. Where
    ports have failed or the fabric does not join them, the next cheapest are taken.

    Source: NVIDIA 2022, "Doubling all2all performance with NCCL 2.12" (PXN).
    """
    lanes = max(map(len, own))
    enter_order = np.stack(
        [_ranked(target.from_port, own, lane, target.down) for lane in range(lanes)], axis=1
    )
    leave_order = np.stack(
        [_ranked(source.to_port, own, lane, source.up) for lane in range(lanes)], axis=1
    )
    kind = _kinds(source, own, relay)
    width, ports = len(own), len(source.rail)
    leave = np.full((width, width, lanes), NO_PORT, dtype=np.intp)
    enter = leave.copy()
    order = np.argsort(enter_order, axis=2, kind="stable")
    rank = np.argsort(np.argsort(leave_order, axis=2, kind="stable"), axis=2)[:, None]
    for turn in range(ports):
        q = order[:, :, turn]
        grade = np.where(_joined(source, target, q), kind[:, target.rail[q]], _NEVER)
        best = np.argmin(grade * ports + rank, axis=3)
        usable = np.take_along_axis(grade, best[..., None], axis=3)[..., 0] < _NEVER
        usable &= np.isfinite(np.take_along_axis(target.from_port, q, axis=1))[None]
        new = usable & (leave == NO_PORT)
        leave[new], enter[new] = best[new], np.broadcast_to(q, new.shape)[new]
        if (leave != NO_PORT).all():
            break
    return Choice(leave=leave, enter=enter)


def _ranked(cost: FloatArray, own: Sequence[IntArray], lane: int, alive: IntArray) -> FloatArray:
    """Return (accelerators, ports) keys that sort ports, own ones from the lane on first."""
    key = cost.copy()
    for accelerator, ports in enumerate(own):
        turned = np.roll(ports, -(lane % len(ports)))
        key[accelerator, turned] = np.arange(-len(ports), 0)
    key[:, alive == NO_PORT] = np.inf
    return key


def _kinds(source: Side, own: Sequence[IntArray], relay: bool) -> IntArray:
    """Return (accelerators, rails, ports): what each port is to a sender towards a rail."""
    cost = source.to_port
    mine = _ownership(own, len(source.rail))
    rails = np.arange(len(source.rail))
    same = source.rail == rails[:, None]
    kind = np.where(mine, _OWN, _OTHER)[:, None, :].repeat(len(rails), axis=1)
    if relay:
        kind[same & _relays(source, mine)[:, None, :]] = _RELAY
    kind[same & mine[:, None, :]] = _OWN_RAIL
    kind[np.broadcast_to(~np.isfinite(cost)[:, None, :], kind.shape)] = _NEVER
    return kind


def _ownership(own: Sequence[IntArray], ports: int) -> BoolArray:
    mine = np.zeros((len(own), ports), dtype=np.bool_)
    for accelerator, its in enumerate(own):
        mine[accelerator, its] = True
    return mine


def _relays(source: Side, mine: BoolArray) -> BoolArray:
    """Return (accelerators, ports) where an owner of the port is nearer than any own port."""
    inside, cost = source.inside, source.to_port
    between = inside.cost[np.ix_(inside.accelerator, inside.accelerator)]
    nearest = np.where(mine, cost, np.inf).min(axis=1)
    closer = between < nearest[:, None]
    return np.asarray((closer[:, :, None] & mine[None]).any(axis=1))


def _joined(source: Side, target: Side, enter: IntArray) -> BoolArray:
    """Return (1, accelerators, lanes, ports) whether the fabric leads from each port to `enter`."""
    part = target.down[enter]
    joined: BoolArray = (source.up == part[..., None]) & (part[..., None] != NO_PORT)
    return joined[None]
