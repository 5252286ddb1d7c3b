"""What the user's search table forbids, as rules that settle whole branches like a layout's own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from simulator.conditions import conditions_of
from simulator.errors import Problem
from simulator.parallel.checks import Asked, Reason, Rule, Violation
from simulator.parallel.domains import Domains
from simulator.parallel.forbidden import ForbiddenLayout
from simulator.parallel.layout import Axis, axis_group
from simulator.scenario import Scenario

_DECIDES = {
    "etp": ("tp", "etp"),
    "schedule": ("schedule", "vpp"),
}
"""Fields of a layout that decide a key of a forbidden one, where they are others."""
_GROUPS = {
    Axis.TENSOR: ("tp",),
    Axis.CONTEXT: ("tp", "cp"),
    Axis.DATA: ("tp", "cp", "dp"),
    Axis.EXPERT: ("tp", "ep", "etp"),
    Axis.EXPERT_TENSOR: ("tp", "etp"),
    Axis.EXPERT_DATA: ("tp", "cp", "dp", "ep", "etp"),
}
"""Fields of a layout that decide the shape of a group along an axis."""


def constraint_rules(scenario: Scenario) -> list[Rule]:
    """Return the rules that the search table adds to those of the model, job and stack."""
    search = scenario.file.search
    rules = [
        Rule(_read_by(entry), partial(_forbidden, number, entry))
        for number, entry in enumerate(search.forbid)
    ]
    if search.dp is not None or search.dp_multiple_of > 1:
        rules.append(Rule(("dp",), partial(_replicas, scenario)))
    if search.within_domain:
        domains = _domains(scenario)
        rules += [
            Rule(_GROUPS[axis], partial(_spread, axis, domains))
            for axis in dict.fromkeys(search.within_domain)
        ]
    return rules


def _read_by(entry: ForbiddenLayout) -> tuple[str, ...]:
    fields = (field for key in entry.given for field in _DECIDES.get(key, (key,)))
    return tuple(dict.fromkeys(fields))


def _domains(scenario: Scenario) -> Domains:
    """Return which ranks share a scale-up domain, in the order that the scenario has."""
    network = conditions_of(scenario).network
    return scenario.profile.node.scale_up.domain_size if network is None else network.domains


def _forbidden(number: int, entry: ForbiddenLayout, asked: Asked) -> Iterator[Violation]:
    if entry.matches(asked.layout):
        yield _constraint(f"forbid.{number}", str(asked.layout), f"{entry} is forbidden")


def _replicas(scenario: Scenario, asked: Asked) -> Iterator[Violation]:
    search, dp = scenario.file.search, asked.layout.dp
    if search.dp is not None and dp not in search.dp:
        listed = ", ".join(map(str, sorted(set(search.dp))))
        yield _constraint("dp", f"dp {dp}", f"dp must be one of {listed}")
    elif dp % search.dp_multiple_of:
        rule = f"dp must be a multiple of {search.dp_multiple_of}"
        yield _constraint("dp_multiple_of", f"dp {dp}", rule)


def _spread(axis: Axis, domains: Domains, asked: Asked) -> Iterator[Violation]:
    group = axis_group(asked.layout, axis, domains)
    if group.domains > 1:
        found = f"{axis} groups of {group.size} ranks in {group.domains} scale-up domains"
        yield _constraint("within_domain", found, f"{axis} groups must stay in one domain")


def _constraint(key: str, found: str, rule: str) -> Violation:
    problem = Problem(key=f"search.{key}", found=found, rule=rule, fix="another layout")
    return Violation(reason=Reason.CONSTRAINT, problem=problem)
