"""The groups over which gradients are reduced and ZeRO shards, of dense weights and of experts."""

from __future__ import annotations

from typing import NamedTuple

from simulator.parallel.domains import Domains, group_shape
from simulator.parallel.groups import GroupShape
from simulator.parallel.layout import (
    Axis,
    ParallelLayout,
    Placement,
    axis_group,
    stage_pair,
)


class DataGroups(NamedTuple):
    """The groups over which gradients are reduced, as in `StepProgram`."""

    data: GroupShape
    replica: GroupShape
    expert_data: GroupShape
    expert_replica: GroupShape


def data_groups(layout: ParallelLayout, domains: Domains) -> DataGroups:
    """Return the groups of a rank over which gradients of dense weights and of experts travel."""
    data = axis_group(layout, Axis.DATA, domains)
    shards = layout.shard_ranks
    stride, replicas = layout.tp * shards, data.size // shards
    expert_stride = layout.ep * layout.expert_tp
    expert_shards = layout.expert_data_ranks // replicas
    sharded = data if shards == data.size else group_shape(shards, layout.tp, domains)
    experts = group_shape(expert_shards, expert_stride, domains)
    return DataGroups(
        data=_with_copies(layout, sharded, domains),
        replica=group_shape(replicas, stride, domains),
        expert_data=_with_copies(layout, experts, domains),
        expert_replica=group_shape(replicas, expert_stride * expert_shards, domains),
    )


def _with_copies(layout: ParallelLayout, group: GroupShape, domains: Domains) -> GroupShape:
    """Return a data group with the ranks that hold the other copy of its parameters (DualPipe).

    They stand on the stage that mirrors this one; first and last, which are furthest apart, decide
    whether the two share a scale-up domain.
    """
    if layout.pipeline.placement is not Placement.BIDIRECTIONAL:
        return group
    ends = stage_pair(layout, 0, layout.pp - 1, domains)
    return GroupShape(size=group.size * ends.size, per_domain=group.per_domain * ends.per_domain)
