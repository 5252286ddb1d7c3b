"""The layouts of a scenario: what was considered, what is legal, and why the rest was refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

from planner.axes import AXES, Choice, Mesh, depths, options, tensor_sizes
from planner.constraints import constraint_rules
from planner.refusals import contradiction, not_whole, too_many
from planner.search_checks import search_problems
from simulator.errors import InputError, Problem
from simulator.parallel.checks import RULES, Asked, Reason, Rule, Violation
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario

MAX_STEPS = 1_000_000
"""Choices looked at, and legal layouts, before a search is refused as too wide; GPT-3 on 1,024 A100
has 5,700 layouts, DeepSeek-V3 on 2,048 H100 68,000."""

_PLAIN = ParallelLayout()
_REASONS = tuple(Reason)


class Branch(NamedTuple):
    """What is open behind a choice at one axis: the legal choices at the next, and so on.

    Branches that are alike are one object, so that a space takes little more than its axes.
    """

    open: tuple[tuple[Choice, Branch], ...]
    """Legal choices with what is open behind each; none behind the last axis."""
    legal: int
    """Layouts."""
    rejected: Mapping[Reason, int]


_LEAF = Branch(open=(), legal=1, rejected={})


class Counts(NamedTuple):
    """Layouts of one part of a space."""

    legal: int
    rejected: Mapping[Reason, int]


@dataclass(frozen=True, kw_only=True)
class Space:
    """The layouts of a scenario, and those that break a rule.

    One count is one layout: a combination of the fields of `planner.axes.AXES`. It counts once,
    under the first rule it breaks, where a world size that does not divide comes first, and then
    `simulator.parallel.checks.RULES`, those whose fields are chosen early before the others, and
    what the search table forbids; so that `considered` is `legal` plus all of `rejected`. A branch
    that is refused as a whole counts with all its combinations. Where tp x pp x cp leaves no whole
    dp, or dp does not divide the batch, there is one micro-batch size to count.
    """

    meshes: tuple[Branch, ...]
    """For each tp x pp x cp x dp the layouts, whose first choice it is."""
    rejected: Mapping[Reason, int]
    examples: Mapping[Reason, Problem]
    """For each reason the first case met, with its legal alternatives."""
    by_size: Mapping[tuple[int, int], Counts]
    """The counts of each tp and pp, whatever cp and dp are."""

    @property
    def considered(self) -> int:
        """Legal layouts and those that break a rule."""
        return self.legal + sum(self.rejected.values())

    @cached_property
    def legal(self) -> int:
        """Layouts that break no rule."""
        return sum(mesh.legal for mesh in self.meshes)

    @cached_property
    def layouts(self) -> tuple[ParallelLayout, ...]:
        """The legal ones, in a fixed order."""
        plain = dict(_PLAIN)
        found = (fields for mesh in self.meshes for fields in _leaves(mesh, plain))
        return tuple(map(ParallelLayout.of_checked, found))


def plain_fields() -> Choice:
    """Return what a layout has in the fields that no axis chooses."""
    return dict(_PLAIN)


def _leaves(branch: Branch, chosen: Choice) -> Iterator[Choice]:
    """Yield the fields of every layout of a branch."""
    for choice, behind in branch.open:
        fields = chosen | choice
        if behind is _LEAF:
            yield fields
        else:
            yield from _leaves(behind, fields)


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
    """Owns the counts of one enumeration.

    A branch depends on the choices before it only through those that its rules read: branches that
    are equal in these are walked once.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.rejected: dict[Reason, int] = {}
        self.examples: dict[Reason, Problem] = {}
        rules = rules_by_axis(constraint_rules(scenario))
        self.levels = [[_Tested(rule) for rule in each] for each in rules]
        self.reads = [_values(fields) for fields in _read_behind(rules)]
        self.known: dict[tuple[Any, ...], Branch] = {}
        self.steps = 0

    def run(self) -> Space:
        search = self.scenario.file.search
        if problems := list(search_problems(self.scenario)):
            raise InputError(*problems)
        sizes = tensor_sizes(self.scenario), depths(self.scenario), search.cp
        if prod(map(len, sizes)) > MAX_STEPS:
            raise InputError(too_many(self.scenario, MAX_STEPS))
        walked = {(tp, pp, cp): self._mesh(tp, pp, cp) for tp, pp, cp in product(*sizes)}
        meshes = list(walked.values())
        found = Space(
            meshes=tuple(mesh for mesh in meshes if mesh.legal),
            rejected=_added(mesh.rejected for mesh in meshes),
            examples=self.examples,
            by_size=_by_size(walked),
        )
        if not found.considered:
            raise InputError(contradiction(self.scenario))
        if found.legal > MAX_STEPS:
            raise InputError(too_many(self.scenario, MAX_STEPS))
        return found

    def _mesh(self, tp: int, pp: int, cp: int) -> Branch:
        world, ranks = self.scenario.world_size, tp * pp * cp
        mesh = Mesh(tp=tp, pp=pp, cp=cp, dp=max(1, world // ranks))
        choices = options(self.scenario, mesh)
        if world % ranks:
            return _closed(self._refused(not_whole(world, tp, pp, cp), choices))
        self.known.clear()
        return self._branch(0, dict(_PLAIN), [[mesh.choice()], *choices])

    def _branch(self, axis: int, chosen: Choice, choices: list[list[Choice]]) -> Branch:
        """Return what is open from one axis on."""
        if axis == len(choices):
            return _LEAF
        key = (axis, self.reads[axis](chosen))
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._walked(axis, chosen, choices)
        return found

    def _walked(self, axis: int, chosen: Choice, choices: list[list[Choice]]) -> Branch:
        """Choose at one axis, and at those behind it where no rule is broken."""
        opened: list[tuple[Choice, Branch]] = []
        rejected: list[Mapping[Reason, int]] = []
        for choice in choices[axis]:
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise InputError(too_many(self.scenario, MAX_STEPS))
            fields = chosen | choice
            broken = self._broken(axis, fields)
            if broken is not None:
                rejected.append(self._refused(broken, choices[axis + 1 :]))
                continue
            behind = self._branch(axis + 1, fields, choices)
            rejected.append(behind.rejected)
            if behind.legal:
                opened.append((choice, behind))
        legal = sum(behind.legal for _, behind in opened)
        return Branch(open=tuple(opened), legal=legal, rejected=_added(rejected))

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

    def _refused(
        self, broken: Violation, choices: Sequence[Sequence[Choice]]
    ) -> Mapping[Reason, int]:
        count = prod(len(choice) for choice in choices)
        if not count:
            return {}
        self.examples.setdefault(broken.reason, broken.problem)
        return {broken.reason: count}


def _by_size(meshes: Mapping[tuple[int, int, int], Branch]) -> dict[tuple[int, int], Counts]:
    together: dict[tuple[int, int], list[Branch]] = {}
    for (tp, pp, _), mesh in meshes.items():
        together.setdefault((tp, pp), []).append(mesh)
    return {
        size: Counts(sum(mesh.legal for mesh in parts), _added(mesh.rejected for mesh in parts))
        for size, parts in together.items()
    }


def _closed(rejected: Mapping[Reason, int]) -> Branch:
    return Branch(open=(), legal=0, rejected=rejected)


def _added(counts: Iterable[Mapping[Reason, int]]) -> dict[Reason, int]:
    """Return the sums, in the order of the reasons."""
    total: dict[Reason, int] = {}
    for each in counts:
        for reason, count in each.items():
            total[reason] = total.get(reason, 0) + count
    if len(total) <= 1:
        return total
    return {reason: total[reason] for reason in _REASONS if reason in total}


def rules_by_axis(more: Sequence[Rule] = ()) -> list[list[Rule]]:
    """Return for each of `AXES` the rules whose fields are all chosen with it, and not before.

    They are those of `simulator.parallel.checks`, and `more` behind them.
    """
    chosen_at = {field: number for number, fields in enumerate(AXES) for field in fields}
    levels: list[list[Rule]] = [[] for _ in AXES]
    for rule in (*RULES, *more):
        levels[max(chosen_at.get(field, 0) for field in rule.reads)].append(rule)
    return levels


def _read_behind(levels: list[list[Rule]]) -> list[tuple[str, ...]]:
    """Return for each axis the fields chosen before it that rules at it or behind it read."""
    found = []
    for axis in range(len(levels)):
        read = {field for rules in levels[axis:] for rule in rules for field in rule.reads}
        before = (field for fields in AXES[:axis] for field in fields)
        found.append(tuple(field for field in before if field in read))
    return found


def _values(fields: tuple[str, ...]) -> Callable[[Choice], Any]:
    """Return what takes the values of some fields."""
    return itemgetter(*fields) if fields else lambda _: ()


class _Tested:
    """One rule, which is tested once for equal values of the fields that it reads."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.key = itemgetter(*rule.reads)
        self.verdicts: dict[Any, Violation | None] = {}

    def test(self, scenario: Scenario, fields: Choice) -> Violation | None:
        """Return what the fields break first of the rule."""
        asked = Asked(
            model=scenario.model.spec,
            job=scenario.file.job,
            stack=scenario.stack,
            layout=ParallelLayout.of_checked(fields),
        )
        return next(self.rule.broken(asked), None)
