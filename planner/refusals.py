"""What is wrong with a search table, or with a combination of it, in words."""

from __future__ import annotations

from planner.axes import divisors, schedules
from simulator.errors import Problem
from simulator.parallel.checks import Reason, Violation
from simulator.scenario import Scenario


def not_whole(world: int, tp: int, pp: int, cp: int) -> Violation:
    """Return that a mesh leaves no whole number of data ranks."""
    problem = Problem(
        key="search",
        found=f"tp {tp}, pp {pp}, cp {cp}",
        rule=f"tp x pp x cp = {tp * pp * cp} must divide the {world} accelerators",
        fix="sizes whose product is one of: " + ", ".join(map(str, divisors(world))),
    )
    return Violation(reason=Reason.WORLD_SIZE, problem=problem)


def no_choice(scenario: Scenario, key: str) -> Problem:
    """Return that a list of the search table is empty."""
    return Problem(
        where=scenario.where,
        key=f"search.{key}",
        found="[]",
        rule="must have at least one entry",
        fix="leave it out, and it is free",
    )


def too_many(scenario: Scenario, limit: int) -> Problem:
    """Return that a search has more combinations than are listed."""
    search = scenario.file.search
    lists = {key: len(value) for key, value in search if isinstance(value, tuple)}
    return Problem(
        where=scenario.where,
        key="search",
        found=", ".join(f"{key} of {count}" for key, count in lists.items() if count > 1),
        rule=f"must take at most {limit} steps to list its layouts",
        fix="shorter lists of tp, pp, cp, ep, vpp and micro_batch_size",
    )


def contradiction(scenario: Scenario) -> Problem:
    """Return that a search table leaves nothing at all."""
    search = scenario.file.search
    return Problem(
        where=scenario.where,
        key="search",
        found=f"vpp {search.vpp}, schedule {[str(name) for name in schedules(scenario)]}",
        rule="leaves no layout to consider: interleaved and looped-bfs need pp > 1 and vpp > 1, "
        "zb-v, dualpipe and dualpipe-v vpp = 2, all other schedules vpp = 1",
        fix="leave out search.vpp and search.schedule",
    )
