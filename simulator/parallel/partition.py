"""Which layers stand on which pipeline stage."""

from __future__ import annotations

from itertools import accumulate

from simulator.errors import InputError, Problem
from simulator.parallel.layout import ParallelLayout
from simulator.workload.stack import PartitionRule


def partition_layers(layout: ParallelLayout, layers: int, rule: PartitionRule) -> tuple[int, ...]:
    """Return the number of layers of each virtual stage, in model order; they add up to `layers`.

    Raises:
        InputError: the layers cannot be spread so; names the splits that can.
    """
    stages = layout.virtual_stages
    if layout.layers_per_stage is not None:
        return _given(layout.layers_per_stage, layers, stages)
    if stages > layers:
        raise InputError(
            Problem(
                key="layout.pp",
                rule=f"{layers} layers cannot fill pp x vpp = {layout.pp} x {layout.vpp} = {stages} "
                "stages",
                fix=f"use pp x vpp of at most {layers}",
            )
        )
    match rule:
        case PartitionRule.EVEN:
            return _even(layout, layers)
        case PartitionRule.BALANCED:
            return balanced(layers, stages)
        case PartitionRule.EMBEDDING_COUNTS | PartitionRule.BY_COST:
            return _ends_count(layers, stages)


def balanced(layers: int, stages: int) -> tuple[int, ...]:
    """Return a split in which the first stages take one layer more.

    >>> balanced(30, 4)
    (8, 8, 7, 7)
    """
    each, extra = divmod(layers, stages)
    return tuple(each + (i < extra) for i in range(stages))


def _given(given: tuple[int, ...], layers: int, stages: int) -> tuple[int, ...]:
    if len(given) != stages or sum(given) != layers or min(given) < 0:
        raise InputError(
            Problem(
                key="layout.layers_per_stage",
                found=f"{len(given)} numbers that add up to {sum(given)}",
                rule=f"must be pp x vpp = {stages} numbers of at least 0 that add up to the "
                f"model's {layers} layers",
                fix=f"for example {list(balanced(layers, stages))}",
            )
        )
    return given


def _even(layout: ParallelLayout, layers: int) -> tuple[int, ...]:
    stages = layout.virtual_stages
    if layers % stages:
        legal = [n for n in range(1, layers + 1) if layers % n == 0]
        raise InputError(
            Problem(
                key="layout.pp",
                found=f"pp {layout.pp} x vpp {layout.vpp} = {stages}",
                rule=f"{layers} layers must divide by pp x vpp in this stack",
                fix=f"pp x vpp of {_listed(legal)}, or layers_per_stage = "
                f"{list(balanced(layers, stages))}",
            )
        )
    return (layers // stages,) * stages


def _ends_count(layers: int, stages: int) -> tuple[int, ...]:
    """Embedding and head count as one layer each, cut as evenly as possible."""
    if stages == 1:
        return (layers,)
    bounds = [0, *accumulate(balanced(layers + 2, stages))]
    inside = [min(max(bound - 1, 0), layers) for bound in bounds]
    return tuple(stop - start for start, stop in zip(inside, inside[1:], strict=False))


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
