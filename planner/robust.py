"""The best few layouts under joint draws of the uncertain constants: chance, regret, interval.

All layouts see the same draws, so that what they share cancels: the error of the stack as a whole
(`fit.spread`) moves none of them past another. What differs: constants, drawn by source of error
and followed by a new estimate of each layout; and an error that a layout does not share with the
others, of which those with equal kernels, an equal pipeline, or equal data parallelism share a
third each. It is as large as measured between layouts of one job, less what the constants explain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.changes import Change, changed
from planner.error_sources import (
    INTERVAL_END,
    ErrorSource,
    error_sources,
    error_table,
    layout_deviation,
)
from planner.hypercube import hypercube
from planner.ranking import renumbered
from planner.result import Chance, Drawn, PlannedLayout
from planner.selection import Pool
from simulator.aims import LayoutChoice, UncertaintyFile
from simulator.api import Forecaster
from simulator.errors import InputError, Problem
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario
from simulator.workload.calibrated import relative_spread

Matrix = NDArray[np.float64]
REPEATS = 16
"""Draws of the cheap errors, those of layouts and of the stack, for each draw of constants."""
_LOW, _HIGH = 10.0, 90.0
"""Percentiles: ends of an 80 % interval."""
SHARED = "stack, shared by all layouts"
OWN = "layout, not shared"


def compared(
    scenario: Scenario, pools: Sequence[Pool], layouts: tuple[PlannedLayout, ...]
) -> tuple[tuple[PlannedLayout, ...], Drawn | None]:
    """Return the layouts with the chances of the first few, and how these were drawn.

    For a robust choice they are put in order of their expected regret. Nothing is drawn unless the
    scenario asks for it: by `search.choice`, or with an `uncertainty` table.
    """
    robust = scenario.file.search.choice is LayoutChoice.ROBUST
    if not layouts or not (robust or scenario.file.uncertainty is not None):
        return layouts, None
    few = layouts[: (scenario.file.uncertainty or UncertaintyFile()).layouts]
    study = draw(scenario, pools, few)
    found = [
        replace(entry, chance=chance) for entry, chance in zip(few, study.chances, strict=True)
    ]
    if robust:
        found.sort(key=lambda entry: (entry.chance.regret if entry.chance else 0.0, entry.rank))
    return renumbered([*found, *layouts[len(few) :]]), study.drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What was drawn, and what it says of each layout."""

    chances: tuple[Chance, ...]
    drawn: Drawn


def draw(scenario: Scenario, pools: Sequence[Pool], layouts: Sequence[PlannedLayout]) -> Study:
    """Return how layouts compare under joint draws of all that is uncertain of them."""
    asked, table = scenario.file.uncertainty or UncertaintyFile(), error_table()
    sources = error_sources(scenario, table)
    random = np.random.default_rng(asked.seed)
    normals = hypercube(random, asked.draws, len(sources))
    factors = normals * np.array([source.deviation for source in sources])
    logs = _redone(pools, layouts, sources, factors)
    measured, origin = layout_deviation(scenario, table)
    own = max(0.0, measured**2 - _explained(logs)) ** 0.5
    logs = np.repeat(logs, REPEATS, axis=0)
    logs = logs + own * _own_errors(random, len(logs), [entry.layout for entry in layouts])
    shared, narrowed = _fitted_to_spread(scenario, logs)
    common = shared * hypercube(random, len(logs), 1)
    deviations = {source.name: source.deviation for source in sources}
    origins = {source.name: source.origin for source in sources}
    drawn = Drawn(
        draws=asked.draws,
        repeats=REPEATS,
        seed=asked.seed,
        compared=len(layouts),
        sources=deviations | {OWN: own, SHARED: shared},
        origins=origins | {OWN: origin, SHARED: scenario.stack.fit.spread_source},
    )
    return Study(chances=_chances(pools, layouts, logs, narrowed * logs + common), drawn=drawn)


def _redone(
    pools: Sequence[Pool],
    layouts: Sequence[PlannedLayout],
    sources: Sequence[ErrorSource],
    factors: Matrix,
) -> Matrix:
    """Return log(estimate / estimate at the centre) for each draw and layout."""
    variants = {pool.variant.varied: pool.variant for pool in pools}
    found = np.empty((len(factors), len(layouts)))
    for row, drawn in enumerate(factors):
        change: dict[str, Any] = {}
        for source, log_factor in zip(sources, drawn, strict=True):
            change |= source.change(float(log_factor))
        casts = {
            varied: Forecaster.of(_at(variants[varied].scenario, change))
            for varied in dict.fromkeys(entry.varied for entry in layouts)
        }
        for column, entry in enumerate(layouts):
            seconds = casts[entry.varied].step_time(entry.layout)
            found[row, column] = log(seconds / entry.estimate)
    return found


def _at(scenario: Scenario, change: Change) -> Scenario:
    """Return the scenario with drawn constants; a spread may take them out of their range."""
    try:
        return changed(scenario, change)
    except InputError as error:
        rule = f"a draw takes a constant out of its range: {error.problems[0]}"
        key, fix = "uncertainty.spread", "a smaller spread"
        raise InputError(Problem(where=scenario.where, key=key, rule=rule, fix=fix)) from error


def _explained(logs: Matrix) -> float:
    """Return the variance that draws of constants alone make between layouts: half their pairs'."""
    count = logs.shape[1]
    pairs = [float((logs[:, i] - logs[:, j]).var()) / 2 for i in range(count) for j in range(i)]
    return sum(pairs) / len(pairs) if pairs else 0.0


def _fitted_to_spread(scenario: Scenario, logs: Matrix) -> tuple[float, float]:
    """Return the deviation of the error that all layouts share, and a factor for the other errors.

    Together they make the interval of the first layout that of a forecast: its spread was measured
    on whole steps, and where the constants alone would make it wider, it stands.
    """
    software = scenario.profile.constants.software
    spread = relative_spread(scenario.stack, software, scenario.profile.constants.spread)
    whole, drawn = log1p(spread) / INTERVAL_END, float(logs[:, 0].std())
    if drawn > whole:
        return 0.0, whole / drawn
    return (whole**2 - drawn**2) ** 0.5, 1.0


def _own_errors(
    random: np.random.Generator, draws: int, layouts: Sequence[ParallelLayout]
) -> Matrix:
    """Return errors of layouts of unit variance; those with equal parts share a third for each."""
    total = np.zeros((draws, len(layouts)))
    for part in map(list, zip(*map(layout_parts, layouts), strict=True)):
        kinds = list(dict.fromkeys(part))
        columns = hypercube(random, draws, len(kinds))
        total += columns[:, [kinds.index(kind) for kind in part]] / len(_PARTS) ** 0.5
    return total


_PARTS = (
    (
        "tp",
        "cp",
        "ep",
        "etp",
        "micro_batch_size",
        "sequence_parallel",
        "cp_comm_type",
        "cp_inner",
        "recompute",
        "recompute_modules",
        "recompute_num_layers",
        "offload_layers",
    ),
    ("pp", "vpp", "schedule", "microbatch_group_size", "extra_warm_up", "layers_per_stage"),
    ("dp", "zero_stage", "data_parallel", "optimizer_offload"),
)
"""Fields of a layout that decide its kernels, its pipeline, and its data parallelism."""


def layout_parts(layout: ParallelLayout) -> tuple[tuple[Any, ...], ...]:
    """Return what decides a layout's kernels, its pipeline and its data parallelism."""
    return tuple(tuple(getattr(layout, field) for field in part) for part in _PARTS)


def _chances(
    pools: Sequence[Pool], layouts: Sequence[PlannedLayout], logs: Matrix, whole: Matrix
) -> tuple[Chance, ...]:
    """Return what the draws say of each layout: `logs` of how they compare, `whole` of each."""
    measures = {pool.variant.varied: pool.measure for pool in pools}
    objective = pools[0].variant.scenario.file.search.objective
    centre = [measures[e.varied].timed(objective, e.step_time) for e in layouts]
    values = np.array(centre) * np.exp(logs)
    least = values.min(axis=1, keepdims=True)
    winners = values.argmin(axis=1)
    seconds = np.array([entry.step_time for entry in layouts]) * np.exp(whole)
    low, high = np.percentile(seconds, (_LOW, _HIGH), axis=0)
    regrets = (values / least - 1).mean(axis=0)
    return tuple(
        Chance(
            best=float((winners == column).mean()),
            regret=float(regrets[column]),
            low=float(low[column]),
            high=float(high[column]),
        )
        for column in range(len(layouts))
    )
