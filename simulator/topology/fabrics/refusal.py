"""Why a tier cannot be as a file asks, and the nearest that can."""

from __future__ import annotations

from math import ceil, floor

from simulator.errors import Problem
from simulator.topology.fabrics.wish import Wish, tries


def refusal(wish: Wish) -> Problem:
    """Return what is wrong with a wish that nothing fulfils.

    Of all that was tried, it speaks of the first that a switch has the ports for; else of the last.
    """
    tried = list(tries(wish))
    if not tried:
        return _too_open(wish)
    enough = [
        one for one in tried if wish.has_ports(one[1], one[0]) and wish.planes(one[0]) is not None
    ]
    switches, joins = enough[0] if enough else tried[-1]
    if wish.planes(switches) is None:
        return _out_of_reach(wish, switches)
    if not wish.has_ports(joins, switches):
        return _no_ports(wish, joins, switches)
    return _no_whole_cable(wish, joins, switches)


def _no_ports(wish: Wish, joins: int, switches: int) -> Problem:
    down, up = wish.down(joins, switches), ceil(wish.uplinks(joins, switches))
    if not wish.top:
        remedy = "a smaller joins"
    else:
        remedy = "more switches" if wish.file.switches else "more uplinks in the tier below"
    return Problem(
        key=f"{wish.key}.radix",
        found=f"radix {wish.file.radix}",
        rule=f"a switch needs {down} ports down and {up} up",
        fix=f"radix = {down + up}, or {remedy}",
    )


def _too_open(wish: Wish) -> Problem:
    ports = wish.below.uplinks
    if wish.file.radix is None:
        return Problem(
            key=f"{wish.key}.joins",
            rule="each tier but the last needs joins or radix: how much does a switch join?",
            fix="write joins, or the radix of the switch",
        )
    return Problem(
        key=f"{wish.key}.radix",
        found=f"radix {wish.file.radix}",
        rule=f"one of what it joins has {ports} cables to it already",
        fix=f"radix = {2 * ports}, or more",
    )


def _out_of_reach(wish: Wish, switches: int) -> Problem:
    allowed = [n for n in range(1, 2 * switches + 1) if wish.planes(n) is not None]
    near = min(allowed, key=lambda n: abs(n - switches), default=wish.keep)
    rule = f"each switch below has {wish.below.uplinks} cables up, which must reach all it can meet"
    if wish.keep > 1:
        rule += f"; {wish.keep} rails stay apart, so a multiple of {wish.keep}"
    return Problem(
        key=f"{wish.key}.switches",
        found=f"{switches} switches",
        rule=rule,
        fix=f"switches = {near}",
    )


def _no_whole_cable(wish: Wish, joins: int, switches: int) -> Problem:
    uplinks = wish.uplinks(joins, switches)
    counts = [count for count in (floor(uplinks), ceil(uplinks)) if count > 0]
    ratios = [f"{wish.ratio(joins, switches, count):.9g}" for count in counts]
    near = [f"{count} ({ratio}:1)" for count, ratio in zip(counts, ratios, strict=True)]
    return Problem(
        key=f"{wish.key}.oversubscription",
        found=f"{wish.file.oversubscription or 1.0:g}:1 of {joins} below is {uplinks:.6g} uplinks",
        rule="a switch has a whole number of uplinks",
        fix=f"uplinks = {' or '.join(near)}, in place of oversubscription",
    )
