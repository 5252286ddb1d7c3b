"""A measuring plan: from a plan file to batches of points, the most valuable first.

>>> sorted(plan_names())
['full', 'quick', 'standard']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from calibrate.batches import Batch, DeviceFacts, World
from calibrate.plan_case import Case, case_of
from calibrate.plan_collectives import (
    apart,
    collective_launch,
    first_collectives,
    interferences,
    more_collectives,
    pairs,
)
from calibrate.plan_file import Plan
from calibrate.plan_kernels import first_kernels, more_kernels, spread_kernels
from calibrate.plan_seconds import seconds_of
from calibrate.plan_steps import first_layers, layouts, more_layers, trainings, upkeeps
from calibrate.plan_stragglers import stragglers
from calibrate.points import CollectivePoint, Point, key_of
from simulator.errors import InputError, Problem
from simulator.files import nearest, read_record

__all__ = ["Plan", "expand", "load_plan", "plan_names"]

_FOLDER = Path(__file__).resolve().parent / "plans"
_START = 5.0
"""Seconds in which processes import torch, find each other and load kernels; seen: 2-8."""


def plan_names() -> list[str]:
    """Return the names of the shipped plans, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def load_plan(name_or_path: str | Path) -> Plan:
    """Return a shipped plan by name, or the one in a TOML file.

    Raises:
        InputError: unknown name, or everything that is wrong in the file.
    """
    name = str(name_or_path)
    if name in plan_names():
        return read_record(Plan, _FOLDER / f"{name}.toml")
    if name.endswith(".toml"):
        return read_record(Plan, name)
    rule = "is neither a shipped plan nor a .toml file"
    raise InputError(Problem(where=name, rule=rule, fix=nearest(name, plan_names())))


def expand(
    plan: Plan, world: World, facts: DeviceFacts, model: str | None = None
) -> tuple[Batch, ...]:
    """Return what a plan measures with these processes on this device, the most valuable first.

    `model` is a preset or a path; None is the plan's default. A run that is cut anywhere can be
    fitted: first come kernels of the model, then the main collectives at coarse sizes, real steps,
    and then what refines them. Every point comes once.

    Raises:
        InputError: no model where one is needed, a step that does not fit the world, or nothing
            that these processes can measure.
    """
    case = case_of(plan, world, facts, model)
    seen: set[str] = set()
    batches = [
        _batch(stage, fresh, case)
        for stage in _stages(case)
        if (fresh := _fresh(stage.points, seen))
    ]
    if not batches:
        rule = f"nothing of it can be measured by {world.size} process(es) on {world.nodes} node(s)"
        fix = "more processes, or a plan with a section such as [gemm]"
        raise InputError(Problem(where="plan", rule=rule, fix=fix))
    return tuple(batches)


class _Stage(NamedTuple):
    """Points that are worth about as much."""

    name: str
    ranks: Literal["one", "all"]
    points: Iterable[Point]


def _stages(case: Case) -> list[_Stage]:
    first: list[Point] = [*first_layers(case)]
    more: list[Point] = [*upkeeps(case), *more_layers(case)]
    shared = case.layer_ranks > 1
    nothing: tuple[list[Point], list[Point]] = ([], [])
    alone, more_alone = nothing if shared else (first, more)
    trained, at_once = list(trainings(case)), case.training_ranks > 1
    return [
        _Stage("kernels", "one", [*first_kernels(case), *alone, *([] if at_once else trained)]),
        _Stage("layers", "all", [*(first if shared else []), *(trained if at_once else [])]),
        _Stage("collectives", "all", [*first_collectives(case), *apart(case)]),
        _Stage("steps", "all", [*collective_launch(case), *layouts(case)]),
        _Stage("spread", "one", spread_kernels(case)),
        _Stage("stragglers", "all", stragglers(case)),
        _Stage("more-collectives", "all", more_collectives(case)),
        _Stage("interference", "all", interferences(case)),
        _Stage("pairs", "all", pairs(case)),
        _Stage("more-layers", "all", more if shared else []),
        _Stage("more-kernels", "one", [*more_alone, *more_kernels(case)]),
    ]


def _fresh(points: Iterable[Point], seen: set[str]) -> list[Point]:
    """Return the points whose keys are not in `seen`, each once, and add them."""
    fresh = {key_of(point): point for point in points if key_of(point) not in seen}
    seen.update(fresh)
    return list(fresh.values())


def _batch(stage: _Stage, points: Sequence[Point], case: Case) -> Batch:
    each = tuple(seconds_of(point, case) for point in points)
    return Batch(
        name=stage.name,
        ranks=stage.ranks,
        points=tuple(points),
        seconds=_START + sum(each),
        nccl_choice=_tells_choice(points, case),
        each=each,
    )


def _tells_choice(points: Sequence[Point], case: Case) -> bool:
    """Return whether NCCL may write a line a call: nothing but collectives is timed beside it."""
    section = case.plan.collectives
    wanted = section is None or section.nccl_choice
    return wanted and all(isinstance(point, CollectivePoint) for point in points)
