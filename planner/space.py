"""The layouts of a scenario: what was considered, what is legal, and why the rest was refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import isqrt, prod
from typing import Any

from simulator.errors import InputError, Problem
from simulator.parallel.checks import Reason, Violation, violations
from simulator.parallel.layout import ParallelLayout, ScheduleName
from simulator.scenario import Scenario
from simulator.workload.stack import PartitionRule

MAX_STEPS = 200_000
"""Choices looked at before a search is refused as too wide; GPT-3 on 1,024 A100 takes 3,300."""

_Axes = dict[str, Any]
"""Fields of a `ParallelLayout` that are settled so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The layouts of a scenario, and those that break a rule.

    One count is one layout: a combination of tp, pp, cp, sequence_parallel, micro_batch_size,
    schedule with vpp, zero_stage and recompute. It counts once, under the first rule it breaks in
    the order of `simulator.parallel.checks.violations` (a world size that does not divide comes
    first), so that `considered` is the number of `layouts` plus all of `rejected`. A branch that is
    refused as a whole counts with all its combinations. Where tp x pp x cp leaves no whole dp, or
    dp does not divide the batch, there is one micro-batch size to count.
    """

    considered: int
    layouts: tuple[ParallelLayout, ...]
    """The legal ones, in a fixed order."""
    rejected: Mapping[Reason, int]
    examples: Mapping[Reason, Problem]
    """For each reason the first case met, with its legal alternatives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """A choice that is made at once, and the rules that can be tested after it."""

    reasons: frozenset[Reason]
    depends: tuple[str, ...]
    """The axes that these rules read: equal values give equal verdicts."""


_SHAPE = _Level(
    reasons=frozenset({Reason.HEADS, Reason.WIDTH, Reason.NOT_MODELLED, Reason.SEQUENCE}),
    depends=("tp", "cp"),
)
_LEVELS = (
    _Level(
        reasons=frozenset({Reason.SEQUENCE, Reason.STACK}),
        depends=("tp", "cp", "sequence_parallel"),
    ),
    _Level(reasons=frozenset({Reason.BATCH}), depends=("dp", "micro_batch_size")),
    _Level(
        reasons=frozenset({Reason.SCHEDULE, Reason.LAYERS}),
        depends=("pp", "dp", "micro_batch_size", "schedule", "vpp"),
    ),
    _Level(reasons=frozenset({Reason.ZERO, Reason.DATA_PARALLEL}), depends=("pp", "zero_stage")),
    _Level(reasons=frozenset({Reason.STACK}), depends=("recompute",)),
)


def enumerate_layouts(scenario: Scenario) -> Space:
    """Return all layouts that use the whole cluster, within the scenario's search table.

    Left free, tp are the divisors of the world size up to `max_tp` (the scale-up domain), pp those
    up to the number of layers, vpp the divisors of a stage's layers, micro-batch sizes the divisors
    of a replica's batch, ZeRO stages those of the stack. sequence_parallel is free only for tp > 1,
    vpp only for the interleaved schedule, zero_stage only for more than one data rank. Where layers
    divide over the stages only if first and last take one less, and the stack can do that, the
    layouts say so in layers_per_stage.

    Raises:
        InputError: the search table contradicts itself.
    """
    return _Walk(scenario).run()


class _Walk:
    """Owns the counts of one enumeration."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.rejected: dict[Reason, int] = {}
        self.examples: dict[Reason, Problem] = {}
        self.layouts: list[ParallelLayout] = []
        self.verdicts: dict[tuple[object, ...], Violation | None] = {}
        self.steps = 0

    def run(self) -> Space:
        search, world = self.scenario.file.search, self.scenario.world_size
        empty = [key for key, value in search if value == ()]
        if empty:
            raise InputError(*(_no_choice(self.scenario, key) for key in empty))
        for tp, pp, cp in product(tensor_sizes(self.scenario), _depths(self.scenario), search.cp):
            self._step()
            shape: _Axes = {"tp": tp, "pp": pp, "cp": cp, "dp": max(1, world // (tp * pp * cp))}
            options = _options(self.scenario, shape)
            if world % (tp * pp * cp):
                self._refuse(_not_whole(world, tp, pp, cp), options)
            elif (broken := self._verdict(_SHAPE, shape)) is not None:
                self._refuse(broken, options)
            else:
                self._descend(0, shape, options)
        considered = len(self.layouts) + sum(self.rejected.values())
        if not considered:
            raise InputError(_contradiction(self.scenario))
        return Space(
            considered=considered,
            layouts=tuple(self.layouts),
            rejected={
                reason: self.rejected[reason] for reason in Reason if reason in self.rejected
            },
            examples=self.examples,
        )

    def _descend(self, number: int, axes: _Axes, options: list[list[_Axes]]) -> None:
        level, rest = _LEVELS[number], options[number + 1 :]
        for choice in options[number]:
            self._step()
            chosen = axes | choice
            broken = self._verdict(level, chosen)
            if broken is not None:
                self._refuse(broken, rest)
            elif rest:
                self._descend(number + 1, chosen, options)
            else:
                self.layouts.append(ParallelLayout(**chosen))

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise InputError(_too_many(self.scenario))

    def _verdict(self, level: _Level, axes: _Axes) -> Violation | None:
        """Return the first rule of this level that the axes break; each case is tested once."""
        key = (level.depends, *(axes[name] for name in level.depends))
        if key not in self.verdicts:
            scenario = self.scenario
            layout = ParallelLayout(**axes)
            found = violations(scenario.model.spec, scenario.file.job, scenario.stack, layout)
            self.verdicts[key] = next((v for v in found if v.reason in level.reasons), None)
        return self.verdicts[key]

    def _refuse(self, broken: Violation, options: list[list[_Axes]]) -> None:
        count = prod(len(level) for level in options)
        if count:
            self.rejected[broken.reason] = self.rejected.get(broken.reason, 0) + count
            self.examples.setdefault(broken.reason, broken.problem)


def tensor_sizes(scenario: Scenario) -> tuple[int, ...]:
    """Return the tp to consider, rising."""
    search = scenario.file.search
    limit = search.max_tp or scenario.profile.node.scale_up.domain_size
    if search.tp is not None:
        return tuple(n for n in _distinct(search.tp) if n <= (search.max_tp or n))
    return tuple(n for n in divisors(scenario.world_size) if n <= min(limit, _most("tp")))


def _depths(scenario: Scenario) -> tuple[int, ...]:
    given, layers = scenario.file.search.pp, scenario.model.spec.num_hidden_layers
    free = (n for n in divisors(scenario.world_size) if n <= min(layers, _most("pp")))
    return _distinct(free if given is None else given)


def _options(scenario: Scenario, shape: _Axes) -> list[list[_Axes]]:
    """Return the choices at each of `_LEVELS` for one tp x pp x cp x dp."""
    search = scenario.file.search
    spread = search.sequence_parallel if shape["tp"] > 1 else (False,)
    return [
        [{"sequence_parallel": value} for value in sorted(set(spread))],
        [{"micro_batch_size": n} for n in _micro_batch_sizes(scenario, shape["dp"])],
        [_pipeline(scenario, shape["pp"], *pair) for pair in _pipelines(scenario, shape["pp"])],
        [{"zero_stage": n} for n in _zero_stages(scenario, shape["dp"] * shape["cp"])],
        [{"recompute": value} for value in dict.fromkeys(search.recompute)],
    ]


def _micro_batch_sizes(scenario: Scenario, dp: int) -> tuple[int, ...]:
    given, batch = scenario.file.search.micro_batch_size, scenario.file.job.global_batch_size
    if given is not None:
        return _distinct(given)
    if batch % dp:
        return (1,)
    return tuple(n for n in divisors(batch // dp) if n <= _most("micro_batch_size"))


def _pipelines(scenario: Scenario, pp: int) -> Iterator[tuple[ScheduleName, int]]:
    search = scenario.file.search
    for name in dict.fromkeys(search.schedule):
        if name is not ScheduleName.INTERLEAVED:
            if search.vpp is None or 1 in search.vpp:
                yield name, 1
        elif pp > 1:
            chunks = _chunk_counts(scenario, pp) if search.vpp is None else _distinct(search.vpp)
            yield from ((name, vpp) for vpp in chunks if vpp > 1)


def _pipeline(scenario: Scenario, pp: int, name: ScheduleName, vpp: int) -> _Axes:
    """Return one choice of pipeline; with short ends the layers of each virtual stage are given."""
    choice: _Axes = {"schedule": name, "vpp": vpp}
    each, rest = divmod(scenario.model.spec.num_hidden_layers + 2, pp * vpp)
    if _has_short_ends(scenario, pp) and not rest:
        choice["layers_per_stage"] = (each - 1, *(each,) * (pp * vpp - 2), each - 1)
    return choice


def _has_short_ends(scenario: Scenario, pp: int) -> bool:
    """Whether the stack can spread layers over pp stages only by leaving the ends one less."""
    layers, stack = scenario.model.spec.num_hidden_layers, scenario.stack
    uneven = stack.partition is PartitionRule.EVEN and layers % pp != 0
    return stack.short_ends and uneven and (layers + 2) % pp == 0


def _chunk_counts(scenario: Scenario, pp: int) -> tuple[int, ...]:
    """Return the divisors of the layers of a stage; ends that count as a layer are layers."""
    layers, rule = scenario.model.spec.num_hidden_layers, scenario.stack.partition
    ends = rule in (PartitionRule.EMBEDDING_COUNTS, PartitionRule.BY_COST)
    ends = ends or _has_short_ends(scenario, pp)
    each = (layers + 2 * ends) // pp
    most = min(_most("vpp"), layers // pp)
    return tuple(vpp for vpp in divisors(each) if vpp <= most) if each else ()


def _most(field: str) -> int:
    """Return the largest size of an axis that a layout may have."""
    limits = ParallelLayout.model_fields[field].metadata
    return next(int(limit.le) for limit in limits if hasattr(limit, "le"))


def _zero_stages(scenario: Scenario, data_ranks: int) -> tuple[int, ...]:
    stack = scenario.stack
    offered = {*stack.zero_stages, *stack.zero_stages_with_pipeline}
    stages = _distinct(scenario.file.search.zero_stage or offered)
    return stages if data_ranks > 1 else stages[:1]


def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of a positive number, rising.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    low = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return tuple(sorted({*low, *(number // n for n in low)}))


def _distinct(numbers: Any) -> tuple[int, ...]:
    return tuple(sorted(set(numbers)))


def _not_whole(world: int, tp: int, pp: int, cp: int) -> Violation:
    problem = Problem(
        key="search",
        found=f"tp {tp}, pp {pp}, cp {cp}",
        rule=f"tp x pp x cp = {tp * pp * cp} must divide the {world} accelerators",
        fix="sizes whose product is one of: " + ", ".join(map(str, divisors(world))),
    )
    return Violation(reason=Reason.WORLD_SIZE, problem=problem)


def _no_choice(scenario: Scenario, key: str) -> Problem:
    return Problem(
        where=scenario.where,
        key=f"search.{key}",
        found="[]",
        rule="must have at least one entry",
        fix="leave it out, and it is free",
    )


def _too_many(scenario: Scenario) -> Problem:
    search = scenario.file.search
    lists = {key: len(value) for key, value in search if isinstance(value, tuple)}
    return Problem(
        where=scenario.where,
        key="search",
        found=", ".join(f"{key} of {count}" for key, count in lists.items()),
        rule=f"must take at most {MAX_STEPS} steps to list its layouts",
        fix="shorter lists of tp, pp, cp, vpp and micro_batch_size",
    )


def _contradiction(scenario: Scenario) -> Problem:
    search = scenario.file.search
    return Problem(
        where=scenario.where,
        key="search",
        found=f"vpp {search.vpp}, schedule {[str(name) for name in search.schedule]}",
        rule="leaves no layout to consider: interleaved needs pp > 1 and vpp > 1, all other "
        "schedules vpp = 1",
        fix="leave out search.vpp and search.schedule",
    )
