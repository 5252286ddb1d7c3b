"""The layouts of a scenario: what was considered, what is legal, and why the rest was refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from operator import itemgetter
from typing import Any

from planner.axes import AXES, Choice, Mesh, depths, options, tensor_sizes
from planner.refusals import contradiction, not_whole, too_many
from planner.search_checks import search_problems
from simulator.errors import InputError, Problem
from simulator.parallel.checks import RULES, Asked, Reason, Rule, Violation
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario

MAX_STEPS = 1_000_000
"""Choices looked at before a search is refused as too wide; GPT-3 on 1,024 A100 takes 3,300,
DeepSeek-V3 on 2,048 H100 250,000."""

_PLAIN = ParallelLayout()


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The layouts of a scenario, and those that break a rule.

    One count is one layout: a combination of the fields of `planner.axes.AXES`. It counts once,
    under the first rule it breaks, where a world size that does not divide comes first, and then
    `simulator.parallel.checks.RULES`, those whose fields are chosen early before the others; so
    that `considered` is the number of `layouts` plus all of `rejected`. A branch that is refused as
    a whole counts with all its combinations. Where tp x pp x cp leaves no whole dp, or dp does not
    divide the batch, there is one micro-batch size to count.
    """

    considered: int
    layouts: tuple[ParallelLayout, ...]
    """The legal ones, in a fixed order."""
    rejected: Mapping[Reason, int]
    examples: Mapping[Reason, Problem]
    """For each reason the first case met, with its legal alternatives."""


def enumerate_layouts(scenario: Scenario) -> Space:
    """Return all layouts that use the whole cluster, within the scenario's search table.

    Left free, tp are the divisors of the world size up to `max_tp` (the scale-up domain), pp those
    up to the number of layers, vpp the divisors of a stage's layers, micro-batch sizes the divisors
    of a replica's batch, ZeRO stages those of the stack; ep are the divisors of the experts, etp 1
    and tp. sequence_parallel is free only for tp > 1, vpp only for schedules that take several
    chunks, zero_stage only for more than one data rank, cp_comm_type only for cp > 1. Where layers
    do not divide over the stages and the stack can be told which go where, the layouts say so in
    layers_per_stage (see `planner.splits`).

    Raises:
        InputError: the search table contradicts itself, or is too wide.
    """
    return _Walk(scenario).run()


class _Walk:
    """Owns the counts of one enumeration."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.rejected: dict[Reason, int] = {}
        self.examples: dict[Reason, Problem] = {}
        self.layouts: list[ParallelLayout] = []
        self.levels = [[_Tested(rule) for rule in rules] for rules in rules_by_axis()]
        self.steps = 0

    def run(self) -> Space:
        search = self.scenario.file.search
        if problems := list(search_problems(self.scenario)):
            raise InputError(*problems)
        sizes = tensor_sizes(self.scenario), depths(self.scenario), search.cp
        if prod(map(len, sizes)) > MAX_STEPS:
            raise InputError(too_many(self.scenario, MAX_STEPS))
        for tp, pp, cp in product(*sizes):
            self._mesh(tp, pp, cp)
        considered = len(self.layouts) + sum(self.rejected.values())
        if not considered:
            raise InputError(contradiction(self.scenario))
        return Space(
            considered=considered,
            layouts=tuple(self.layouts),
            rejected={
                reason: self.rejected[reason] for reason in Reason if reason in self.rejected
            },
            examples=self.examples,
        )

    def _mesh(self, tp: int, pp: int, cp: int) -> None:
        world, ranks = self.scenario.world_size, tp * pp * cp
        mesh = Mesh(tp=tp, pp=pp, cp=cp, dp=max(1, world // ranks))
        choices = options(self.scenario, mesh)
        if world % ranks:
            self._refuse(not_whole(world, tp, pp, cp), choices)
        else:
            self._descend(0, dict(_PLAIN), [[mesh.choice()], *choices])

    def _descend(self, axis: int, chosen: Choice, choices: list[list[Choice]]) -> None:
        """Choose at one axis, and at those behind it where no rule is broken."""
        rest = choices[axis + 1 :]
        for choice in choices[axis]:
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise InputError(too_many(self.scenario, MAX_STEPS))
            fields = chosen | choice
            broken = self._broken(axis, fields)
            if broken is not None:
                self._refuse(broken, rest)
            elif rest:
                self._descend(axis + 1, fields, choices)
            else:
                self.layouts.append(ParallelLayout.of_checked(fields))

    def _broken(self, axis: int, fields: Choice) -> Violation | None:
        """Return what the fields break first of the rules that can be tested at one axis."""
        for tested in self.levels[axis]:
            key = tested.key(fields)
            if key in tested.verdicts:
                broken = tested.verdicts[key]
            else:
                broken = tested.verdicts[key] = tested.test(self.scenario, fields)
            if broken is not None:
                return broken
        return None

    def _refuse(self, broken: Violation, choices: list[list[Choice]]) -> None:
        count = prod(len(choice) for choice in choices)
        if count:
            self.rejected[broken.reason] = self.rejected.get(broken.reason, 0) + count
            self.examples.setdefault(broken.reason, broken.problem)


def rules_by_axis() -> list[list[Rule]]:
    """Return for each of `AXES` the rules whose fields are all chosen with it, and not before."""
    chosen_at = {field: number for number, fields in enumerate(AXES) for field in fields}
    levels: list[list[Rule]] = [[] for _ in AXES]
    for rule in RULES:
        levels[max(chosen_at.get(field, 0) for field in rule.reads)].append(rule)
    return levels


class _Tested:
    """One rule, which is tested once for equal values of the fields that it reads."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.key = itemgetter(*rule.reads)
        self.verdicts: dict[Any, Violation | None] = {}

    def test(self, scenario: Scenario, fields: Choice) -> Violation | None:
        """Return what the fields break of this rule, first."""
        asked = Asked(
            model=scenario.model.spec,
            job=scenario.file.job,
            stack=scenario.stack,
            layout=ParallelLayout.of_checked(fields),
        )
        return next(self.rule.broken(asked), None)
