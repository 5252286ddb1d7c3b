"""The smaller clusters on which a run can go on when nodes are lost and none is left."""

from __future__ import annotations

from collections.abc import Iterator

from planner.goodput.shape import Level
from simulator.api import Forecaster
from simulator.errors import InputError
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario

MAX_LEVELS = 3
"""Sizes below the whole cluster that are looked for, the largest first."""


def levels_of(
    scenario: Scenario, layout: ParallelLayout, forecaster: Forecaster
) -> tuple[Level, ...]:
    """Return the whole cluster and, where the scenario is elastic, what is left without replicas.

    Fewer data-parallel replicas train the same global batch, so that it must divide by theirs; they
    must fill whole nodes. Their step time is the estimate on so many nodes, over that on all.
    """
    nodes = sum(part.nodes for part in scenario.parts)
    whole = (Level(nodes=nodes),)
    if not _asked(scenario):
        return whole
    step = forecaster.step_time(layout)
    smaller = []
    for fewer in _fewer_replicas(scenario, layout):
        count = fewer.world_size // scenario.profile.node.accelerators
        try:
            there = Forecaster.of(_on_nodes(scenario, count))
            there.check(fewer)
            smaller.append(Level(nodes=count, slowdown=there.step_time(fewer) / step))
        except InputError:
            continue
        if len(smaller) == MAX_LEVELS:
            break
    return whole + tuple(smaller)


def elastic_notes(scenario: Scenario, layout: ParallelLayout, levels: int) -> tuple[str, ...]:
    """Return a warning where an elastic run has no smaller size to go on with."""
    if not _asked(scenario) or levels > 1:
        return ()
    return (
        f"run.failures.elastic: no number of replicas below dp {layout.dp} divides the batch of "
        f"{scenario.file.job.global_batch_size}, fills whole nodes and can be forecast, so that "
        "the run waits for nodes",
    )


def _asked(scenario: Scenario) -> bool:
    run = scenario.file.run
    return run is not None and run.failures is not None and run.failures.elastic


def _fewer_replicas(scenario: Scenario, layout: ParallelLayout) -> Iterator[ParallelLayout]:
    """Yield the layout with fewer replicas, most first, where batch and nodes divide."""
    if scenario.mixed:
        return
    batch, per_node = scenario.file.job.global_batch_size, scenario.profile.node.accelerators
    replica = layout.world_size // layout.dp
    for dp in range(layout.dp - 1, 0, -1):
        if batch % (dp * layout.micro_batch_size) == 0 and dp * replica % per_node == 0:
            yield layout.model_copy(update={"dp": dp})


def _on_nodes(scenario: Scenario, nodes: int) -> Scenario:
    cluster = scenario.file.cluster.model_copy(update={"nodes": nodes})
    return scenario.model_copy(
        update={"file": scenario.file.model_copy(update={"cluster": cluster})}
    )
