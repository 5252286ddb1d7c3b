"""Which layers stand on which pipeline stage."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate, pairwise

from simulator.errors import InputError, Problem
from simulator.parallel.layout import ParallelLayout
from simulator.workload.model import ModelSpec
from simulator.workload.stack_choices import PartitionRule

_ENDS = 2
"""The embedding and the head, where each counts as a layer."""
_MOST_SHOWN = 64
"""Stages of a split in an error message."""


def partition_layers(
    layout: ParallelLayout, layers: int, rule: PartitionRule, head_cost: float = 1.0
) -> tuple[int, ...]:
    """Return the number of layers of each virtual stage, in model order; they add up to `layers`.

    `head_cost` is what the output head costs, in layers; only the rule "by-cost" asks.

    Raises:
        InputError: the layers cannot be spread so; names the splits that can.
    """
    stages = layout.pipeline.way
    if layout.layers_per_stage is not None:
        return _given(layout.layers_per_stage, layers, layout)
    pieces = layers + _ENDS * (rule is PartitionRule.EMBEDDING_COUNTS)
    if stages > pieces:
        raise InputError(
            Problem(
                key="layout.pp",
                rule=f"{layers} layers cannot fill {_product(layout)} = {stages} stages",
                fix=f"use {_names(layout)} of at most {pieces}",
            )
        )
    match rule:
        case PartitionRule.EVEN:
            return _even(layout, layers)
        case PartitionRule.BALANCED:
            return balanced(layers, stages)
        case PartitionRule.EMBEDDING_COUNTS:
            return _ends_count(layers, stages)
        case PartitionRule.BY_COST:
            return _by_cost(layers, stages, head_cost)


def balanced(layers: int, stages: int) -> tuple[int, ...]:
    """Return a split in which the first stages take one layer more.

    >>> balanced(30, 4)
    (8, 8, 7, 7)
    """
    each, extra = divmod(layers, stages)
    return tuple(each + (i < extra) for i in range(stages))


@lru_cache(maxsize=64)
def head_cost(model: ModelSpec) -> float:
    """Return the weights of the output head over those of an average layer."""
    layers = sum(layer.parameters * n for layer, n in model.layer_groups().items())
    return model.vocab_size * model.hidden_size * model.num_hidden_layers / layers


def _by_cost(layers: int, stages: int, head: float) -> tuple[int, ...]:
    """A stage takes layers until their cumulated cost is above its share of the whole.

    Source: nanotron src/nanotron/models/base.py, build_model.

    >>> _by_cost(16, 4, 4.0)
    (6, 5, 5, 0)
    """
    share, stage = (layers + head) / stages, 0
    counts = [0] * stages
    for number in range(1, layers + 1):
        counts[stage] += 1
        if number > share * (stage + 1) and stage < stages - 1:
            stage += 1
    return tuple(counts)


def _given(given: tuple[int, ...], layers: int, layout: ParallelLayout) -> tuple[int, ...]:
    stages = layout.pipeline.way
    if len(given) != stages or sum(given) != layers or min(given) < 0:
        raise InputError(
            Problem(
                key="layout.layers_per_stage",
                found=f"{len(given)} numbers that add up to {sum(given)}",
                rule=f"must be {_names(layout)} = {stages} numbers of at least 0 that add up to "
                f"the model's {layers} layers",
                fix=f"for example {_example(layers, stages)}",
            )
        )
    return given


def _even(layout: ParallelLayout, layers: int) -> tuple[int, ...]:
    stages = layout.pipeline.way
    if layers % stages:
        legal = [n for n in range(1, layers + 1) if layers % n == 0]
        raise InputError(
            Problem(
                key="layout.pp",
                found=f"pp {layout.pp} x vpp {layout.vpp} = {stages}"
                if stages == layout.virtual_stages
                else f"pp {layout.pp}",
                rule=f"{layers} layers must divide by {_names(layout)} in this stack",
                fix=f"{_names(layout)} of {_listed(legal)}, or layers_per_stage = "
                f"{_example(layers, stages)}",
            )
        )
    return (layers // stages,) * stages


def _ends_count(layers: int, stages: int) -> tuple[int, ...]:
    """Embedding and head count as one layer each, cut as evenly as possible."""
    if stages == 1:
        return (layers,)
    bounds = [0, *accumulate(balanced(layers + _ENDS, stages))]
    inside = [min(max(bound - 1, 0), layers) for bound in bounds]
    return tuple(stop - start for start, stop in pairwise(inside))


def _names(layout: ParallelLayout) -> str:
    """Return what the parts of the model are counted by: DualPipe holds each of pp parts twice."""
    return "pp x vpp" if layout.pipeline.way == layout.virtual_stages else "pp"


def _product(layout: ParallelLayout) -> str:
    twice = layout.pipeline.way != layout.virtual_stages
    return f"pp {layout.pp}" if twice else f"pp x vpp = {layout.pp} x {layout.vpp}"


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _example(layers: int, stages: int) -> str:
    """Return a split as it is written, shortened where there are many stages."""
    counts = [str(count) for count in balanced(layers, stages)]
    if len(counts) > _MOST_SHOWN:
        counts = [*counts[: _MOST_SHOWN - 2], "...", counts[-1]]
    return f"[{', '.join(counts)}]"
