"""What a scenario asks of `plan` that no layout can do: lists nobody reads, jobs without layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from planner.axes import divisors, schedules
from planner.refusals import no_choice
from simulator.errors import Problem
from simulator.parallel.checks import violations
from simulator.parallel.layout import Axis, ContextExchange, ParallelLayout, Recompute, ScheduleName
from simulator.scenario import Scenario, SearchFile

_BATCH = "job.global_batch_size"
_EXPERT_AXES = (Axis.EXPERT, Axis.EXPERT_TENSOR, Axis.EXPERT_DATA)
_MAY_BE_EMPTY = frozenset(key for key, value in SearchFile() if value == ())
_WARMS_UP = (ScheduleName.ONE_F_ONE_B, ScheduleName.INTERLEAVED)


def search_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield empty lists, lists that the others leave without effect, and what is wrong at any rate.

    A list of which one entry can be used is no mistake: the others count as rejected.
    """
    empty = [key for key, value in scenario.file.search if value == () and key not in _MAY_BE_EMPTY]
    yield from (no_choice(scenario, key) for key in empty)
    if not empty:
        found = [
            *_tensor(scenario),
            *_replicas(scenario),
            *_experts(scenario),
            *_exchanges(scenario),
            *_recomputation(scenario),
        ]
        found += _pipelines(scenario)
        yield from (replace(problem, where=scenario.where) for problem in found)
    yield from (replace(problem, where=scenario.where) for problem in job_problems(scenario))


def job_problems(scenario: Scenario) -> list[Problem]:
    """Return what is wrong with the job alone: what every ZeRO stage and every ep finds in it."""
    model, job, stack = scenario.model.spec, scenario.file.job, scenario.stack
    stages = scenario.file.search.zero_stage or stack.zero_stages
    sizes = {1, model.moe.num_experts} if model.moe else {1}
    common: list[Problem] | None = None
    for zero, ep in product(stages, sizes):
        layout = ParallelLayout(dp=scenario.world_size, zero_stage=zero, ep=ep)
        broken = [each.problem for each in violations(model, job, stack, layout)]
        # Which batch divides is a question of dp.
        own = [each for each in broken if each.key.startswith("job.") and each.key != _BATCH]
        common = own if common is None else [each for each in common if each in own]
    return common or []


def _tensor(scenario: Scenario) -> Iterator[Problem]:
    search = scenario.file.search
    if search.tp is not None and search.max_tp is not None and min(search.tp) > search.max_tp:
        rule = f"must have an entry of at most max_tp = {search.max_tp}"
        yield _unused("tp", search.tp, rule, f"max_tp = {max(search.tp)}, or leave one of them out")


def _replicas(scenario: Scenario) -> Iterator[Problem]:
    search, world = scenario.file.search, scenario.world_size
    sizes = ", ".join(map(str, divisors(world)))
    if search.dp is not None and all(world % dp for dp in search.dp):
        rule = f"must have an entry that divides the {world} accelerators"
        yield _unused("dp", search.dp, rule, f"of {sizes}")
    if world % search.dp_multiple_of:
        rule = f"dp divides the {world} accelerators, and so does what it is a multiple of"
        yield _unused("dp_multiple_of", search.dp_multiple_of, rule, f"of {sizes}")
    experts = [axis for axis in search.within_domain if axis in _EXPERT_AXES]
    if experts and scenario.model.spec.moe is None:
        rule = "a dense model has no experts"
        yield _unused("within_domain", tuple(experts), rule, "leave them out")


def _experts(scenario: Scenario) -> Iterator[Problem]:
    search, moe = scenario.file.search, scenario.model.spec.moe
    if moe is None:
        rule = "a dense model has no experts"
        for key, sizes in (("ep", search.ep), ("etp", search.etp)):
            if sizes is not None and (key == "etp" or 1 not in sizes):
                yield _unused(key, sizes, rule, "leave it out")
    elif search.ep is not None and all(moe.num_experts % size for size in search.ep):
        legal = [size for size in range(1, moe.num_experts + 1) if moe.num_experts % size == 0]
        rule = f"the {moe.num_experts} experts of a layer must divide by ep"
        yield _unused("ep", search.ep, rule, f"of {', '.join(map(str, legal))}")


def _exchanges(scenario: Scenario) -> Iterator[Problem]:
    search, kind = scenario.file.search, ContextExchange.HIERARCHICAL
    if max(search.cp) == 1:
        for key, given in (("cp_comm_type", search.cp_comm_type), ("cp_inner", search.cp_inner)):
            if given is not None:
                fix = "cp with an entry of 2 or more, or leave it out"
                yield _unused(key, given, "cp = 1 exchanges nothing", fix)
    elif search.cp_inner is not None:
        if search.cp_comm_type is not None and kind not in search.cp_comm_type:
            fix = f'cp_comm_type with "{kind}", or leave it out'
            yield _unused("cp_inner", search.cp_inner, f'only "{kind}" has groups', fix)
        elif not any(_cuts(inner, cp) for inner, cp in product(search.cp_inner, search.cp)):
            rule = f"must divide cp ({_listed(search.cp)}), and be neither 1 nor cp"
            yield _unused("cp_inner", search.cp_inner, rule, "leave it out: all such divisors")


def _cuts(inner: int, cp: int) -> bool:
    return 1 < inner < cp and cp % inner == 0


def _recomputation(scenario: Scenario) -> Iterator[Problem]:
    search = scenario.file.search
    if search.recompute_modules is not None and Recompute.SELECTIVE not in search.recompute:
        given = [f"[{_listed(modules)}]" for modules in search.recompute_modules]
        rule = f"names what selective recomputation repeats, not {_listed(search.recompute)}"
        yield _unused("recompute_modules", given, rule, 'recompute with "selective"')
    numbers = search.recompute_num_layers
    if numbers != ("all",) and Recompute.FULL not in search.recompute:
        rule = f"counts layers of full recomputation, not {_listed(search.recompute)}"
        yield _unused("recompute_num_layers", numbers, rule, 'recompute with "full"')


def _pipelines(scenario: Scenario) -> Iterator[Problem]:
    search, names = scenario.file.search, schedules(scenario)
    if search.schedule is not None and ScheduleName.CSV in search.schedule:
        rule = "a schedule from a file is simulated, not searched for: it fits one layout"
        yield _unused("schedule", search.schedule, rule, 'leave out "csv"')
    if search.microbatch_group_size is not None:
        if ScheduleName.INTERLEAVED not in names:
            rule = f"only the interleaved schedule has groups, not {_listed(names)}"
            fix = 'schedule with "interleaved", or leave it out'
            yield _unused("microbatch_group_size", search.microbatch_group_size, rule, fix)
        elif search.pp is not None and max(search.pp) == 1:
            rule = "the interleaved schedule needs pp > 1"
            yield _unused("microbatch_group_size", search.microbatch_group_size, rule, "pp of 2")
    if any(search.extra_warm_up) and not {*_WARMS_UP} & {*names}:
        rule = f"only {_listed(_WARMS_UP)} have it, not {_listed(names)}"
        yield _unused("extra_warm_up", search.extra_warm_up, rule, "leave it out")


def _unused(key: str, given: object, rule: str, fix: str) -> Problem:
    found = _listed(given) if isinstance(given, tuple | list) else str(given)
    return Problem(key=f"search.{key}", found=found, rule=rule, fix=fix)


def _listed(values: object) -> str:
    assert isinstance(values, tuple | list), "lists of the search table"
    return ", ".join(map(str, values))
