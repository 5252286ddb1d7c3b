"""The jobs and clusters of a search: what its table varies besides the layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

from simulator.api import Forecaster
from simulator.errors import InputError, Problem
from simulator.hardware.accelerator import Dtype
from simulator.scenario import Scenario, machine_problems
from simulator.topology.network_file import NetworkFile

MAX_VARIANTS = 256
"""Combinations of the outer axes; each takes a search of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Varied:
    """What tells one variant of a scenario from the others; None is the scenario's own."""

    nodes: int | None = None
    global_batch_size: int | None = None
    precision: Dtype | None = None
    rank_order: str | None = None

    def __str__(self) -> str:
        parts = [] if self.nodes is None else [f"nodes{self.nodes}"]
        parts += [] if self.global_batch_size is None else [f"batch{self.global_batch_size}"]
        parts += [] if self.precision is None else [str(self.precision)]
        parts += [] if self.rank_order is None else [self.rank_order]
        return " ".join(parts)


OWN = Varied()
"""Nothing varied."""
OUTER_AXES = tuple(field.name for field in fields(Varied))
"""Keys of the search table that change the job or the cluster, outermost first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variant:
    """A scenario with one value for each outer axis, ready to be forecast."""

    number: int
    """Its place among the variants, from 0."""
    varied: Varied
    scenario: Scenario
    forecaster: Forecaster


def variants(scenario: Scenario) -> tuple[Variant, ...]:
    """Return every combination of the outer axes, in a fixed order; without any, the scenario.

    Lists of numbers count as given once each, rising; names in the order in which they stand.

    Raises:
        InputError: with all that is wrong with any of them.
        UnsupportedError: the machine has no constants for a precision.
    """
    search = scenario.file.search
    given = {axis: getattr(search, axis) for axis in OUTER_AXES}
    asked = {axis: _distinct(values) for axis, values in given.items() if values is not None}
    if problems := list(_list_problems(scenario, asked)):
        raise InputError(*problems)
    found: list[Variant] = []
    for number, values in enumerate(product(*asked.values())):
        varied = Varied(**dict(zip(asked, values, strict=True)))
        changed = varied_scenario(scenario, varied)
        try:
            if wrong := list(machine_problems(changed)):
                raise InputError(*wrong)
            forecaster = Forecaster.of(changed)
        except InputError as error:
            problems += (_of_variant(each, varied) for each in error.problems)
            continue
        found.append(Variant(number=number, varied=varied, scenario=changed, forecaster=forecaster))
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return tuple(found)


def varied_scenario(scenario: Scenario, varied: Varied) -> Scenario:
    """Return a scenario with what is varied in its job and cluster.

    A precision other than the job's own takes its default recipe, with weights as the stack keeps
    them: `recipe` and `fp8_parameters` are said of the job's own.
    """
    if varied == OWN:
        return scenario
    job, cluster = scenario.file.job, scenario.file.cluster
    changes: dict[str, Any] = {}
    if varied.global_batch_size is not None:
        changes["global_batch_size"] = varied.global_batch_size
    if varied.precision is not None and varied.precision is not job.precision:
        changes |= {"precision": varied.precision, "recipe": None, "fp8_parameters": False}
    machine: dict[str, Any] = {} if varied.nodes is None else {"nodes": varied.nodes}
    if varied.rank_order is not None:
        network = cluster.network or NetworkFile()
        machine["network"] = network.model_copy(update={"rank_order": varied.rank_order})
    file = scenario.file.model_copy(
        update={
            "job": job.model_copy(update=changes),
            "cluster": cluster.model_copy(update=machine),
        }
    )
    return scenario.model_copy(update={"file": file})


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if all(isinstance(value, int) for value in values):
        return tuple(sorted(set(values)))
    return tuple(dict.fromkeys(values))


def _list_problems(scenario: Scenario, asked: dict[str, tuple[Any, ...]]) -> Iterator[Problem]:
    """Yield what is wrong with the lists themselves."""
    where, count = scenario.where, 1
    for axis, values in asked.items():
        count *= len(values)
        if not values:
            rule, fix = "must have at least one entry", "leave it out, and it is the scenario's own"
            yield Problem(where=where, key=f"search.{axis}", found="[]", rule=rule, fix=fix)
    if count > MAX_VARIANTS:
        yield Problem(
            where=where,
            key="search",
            found=" x ".join(f"{axis} of {len(values)}" for axis, values in asked.items()),
            rule=f"at most {MAX_VARIANTS} jobs and clusters are searched at once",
            fix="shorter lists, or one scenario each",
        )
    if "rank_order" in asked and scenario.file.cluster.network is None:
        yield Problem(
            where=where,
            key="search.rank_order",
            found=", ".join(map(str, asked["rank_order"])),
            rule="orders of ranks differ on a network, and the scenario describes none",
            fix="add [cluster.network], or leave it out",
        )


def _of_variant(problem: Problem, varied: Varied) -> Problem:
    """Return a problem that says which variant has it."""
    return problem if varied == OWN else replace(problem, rule=f"{problem.rule} (in {varied})")
