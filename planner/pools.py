"""The layouts of one job and cluster: the legal ones, and which of them fit."""

from __future__ import annotations

from planner.feasible import divide_by_memory
from planner.mixed import with_balanced
from planner.objectives import Measure
from planner.selection import Pool
from planner.space import enumerate_layouts
from planner.variants import Variant

NEAREST = 5
"""Layouts shown where nothing fits."""


def pool_of(variant: Variant) -> Pool:
    """Return the legal layouts of one job and cluster, divided by the memory that they need."""
    scenario = variant.scenario
    space = enumerate_layouts(scenario)
    limit = scenario.file.search.memory_fraction * scenario.profile.accelerator.memory
    feasible = divide_by_memory(variant.forecaster, space, limit, NEAREST)
    if scenario.mixed:
        fraction = scenario.file.search.memory_fraction
        feasible = with_balanced(variant.forecaster, feasible, space.layouts, fraction)
    return Pool(variant=variant, space=space, feasible=feasible, measure=Measure(variant=variant))
