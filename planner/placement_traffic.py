"""What the axes of a layout put on the links of a topology when ranks stand in given places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import assert_never

import numpy as np

from simulator.cost.collectives.pattern import (
    Members,
    Scheme,
    Traffic,
    between_domains,
    between_members,
    inside_domains,
)
from simulator.cost.collectives.schemes import chain_scheme, pairs_scheme, ring_scheme
from simulator.cost.network.column import Column
from simulator.cost.plan import LinkKind
from simulator.parallel.domains import members
from simulator.parallel.layout import Axis, ParallelLayout, Placement
from simulator.topology.graph import FloatArray, IntArray
from simulator.topology.routing import Router

MOST_REMEMBERED = 64
"""Accelerators of a cluster up to which the loads of single groups are kept: there groups come back
to the same places, and elsewhere it is faster to ask for all groups that move at once."""
PLACED = (
    Axis.TENSOR,
    Axis.CONTEXT,
    Axis.DATA,
    Axis.PIPELINE,
    Axis.EXPERT,
    Axis.EXPERT_TENSOR,
    Axis.EXPERT_DATA,
)
"""Axes whose traffic depends on where ranks stand."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Demand:
    """The traffic of one step: who sends to whom, how much, over what."""

    router: Router
    layout: ParallelLayout
    bytes_of: Mapping[Axis, float]
    """Bytes that a rank sends in a step along each axis; of the pipeline, those to the next stage,
    and as many come back. Axes that are left out send nothing."""
    _alone: dict[tuple[Axis, bytes], Column] = field(default_factory=dict, repr=False)
    """Loads of single groups by their accelerators, as far as they have been asked for."""

    @cached_property
    def groups(self) -> dict[Axis, IntArray]:
        """(groups, size) the ranks of all groups of each axis along which anything is sent."""
        found = {
            axis: axis_groups(self.layout, axis)
            for axis in PLACED
            if self.bytes_of.get(axis, 0.0) > 0
        }
        return {axis: groups for axis, groups in found.items() if groups.shape[1] > 1}

    @cached_property
    def domain(self) -> IntArray:
        """(accelerators,) the unit of each."""
        topology = self.router.topology
        return np.arange(topology.size) // topology.width

    def loads(self, axis: Axis, places: IntArray) -> FloatArray:
        """Return (links,) the bytes of an axis on each link."""
        return self.of_groups(axis, places[self.groups[axis]])

    def of_groups(self, axis: Axis, accelerators: IntArray) -> FloatArray:
        """Return (links,) the bytes on each link of groups of an axis, given where they are."""
        sent = self._messages(axis, accelerators)
        return self.router.loads(sent.source, sent.target, sent.weight)

    def change(self, axis: Axis, before: IntArray, after: IntArray) -> FloatArray | None:
        """Return (links,) what other places add to the loads of an axis; None for nothing.

        Only groups with a rank that moves are looked at.
        """
        groups = self.groups[axis]
        moved = (before != after)[groups].any(axis=1)
        if not moved.any():
            return None
        if self.router.topology.size <= MOST_REMEMBERED:
            return self.by_groups(axis, after[groups[moved]]) - self.by_groups(
                axis, before[groups[moved]]
            )
        new = self._messages(axis, after[groups[moved]])
        old = self._messages(axis, before[groups[moved]]).times(-1.0)
        both = Traffic.joined(new, old)
        return self.router.loads(both.source, both.target, both.weight)

    def by_groups(self, axis: Axis, accelerators: IntArray) -> FloatArray:
        """Return what `of_groups` does, as the sum of the loads of each group, found out once."""
        total = np.zeros(self.router.topology.links)
        for group in accelerators:
            key = axis, group.tobytes()
            column = self._alone.get(key)
            if column is None:
                column = self._alone[key] = Column.of(self.of_groups(axis, group[None]))
            total[column.links] += column.weights
        return total

    def _messages(self, axis: Axis, accelerators: IntArray) -> Traffic:
        """Return what groups of an axis send, as bytes between accelerators.

        A group is a ring, unit by unit, that leaves each by all members at once; experts send the
        same to every other rank of their group; stages to the next one and back.
        """
        ranks = Members(accelerators=accelerators, domain=self.domain)
        match axis:
            case Axis.PIPELINE:
                scheme = ring_scheme if goes_round(self.layout) else chain_scheme
                ahead = _everywhere(ranks, scheme)
                found = Traffic.joined(ahead, ahead.back)
            case Axis.EXPERT:
                found = _everywhere(ranks, pairs_scheme).times(1 / (accelerators.shape[1] - 1))
            case Axis.HOST:
                raise AssertionError("traffic to the host passes no link between accelerators")
            case Axis.TENSOR | Axis.CONTEXT | Axis.DATA | Axis.EXPERT_TENSOR | Axis.EXPERT_DATA:
                inside = inside_domains(ranks, ring_scheme)
                found = Traffic.joined(inside, between_domains(ranks, ring_scheme))
            case _:
                assert_never(axis)
        return found.times(self.bytes_of[axis])


def axis_groups(layout: ParallelLayout, axis: Axis) -> IntArray:
    """Return (groups, size) the ranks of all groups of an axis.

    Ranks are ordered tp fastest, then cp, dp, pp; inside a stage experts etp fastest, then ep, edp.

    >>> axis_groups(ParallelLayout(tp=2, pp=2), Axis.PIPELINE)
    array([[0, 2],
           [1, 3]])
    """
    inner, stage = layout.ep * layout.expert_tp, layout.tp * layout.cp * layout.dp
    size, stride = {
        Axis.TENSOR: (layout.tp, 1),
        Axis.CONTEXT: (layout.cp, layout.tp),
        Axis.DATA: (layout.cp * layout.dp, layout.tp),
        Axis.PIPELINE: (layout.pp, stage),
        Axis.EXPERT: (layout.ep, layout.expert_tp),
        Axis.EXPERT_TENSOR: (layout.expert_tp, 1),
        Axis.EXPERT_DATA: (layout.expert_data_ranks, inner),
    }[axis]
    return members(np.arange(layout.world_size), size, stride)


def goes_round(layout: ParallelLayout) -> bool:
    """Return whether the last stage of a pipeline sends on to the first one."""
    return layout.vpp > 1 and layout.pipeline.placement is Placement.LOOP


def _everywhere(ranks: Members, scheme: Scheme) -> Traffic:
    """Return the messages of a scheme over all members, in one unit or not."""
    kinds = (LinkKind.SCALE_UP, LinkKind.SCALE_OUT)
    return Traffic.joined(*(between_members(ranks, kind, scheme) for kind in kinds))
