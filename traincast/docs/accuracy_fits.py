"""What was fitted, and on what, for `docs/accuracy.md`."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.hardware.constants import Origin
from simulator.hardware.profile import load_profile, profile_names
from simulator.workload.stack import Stack, load_stack, stack_names
from traincast.docs.files import share
from traincast.docs.markdown import code, table

_FACTORS = ("scale", "attention", "fp8", "fp4", "grouped")
"""Tables of a stack's `fit` with a factor for each accelerator."""


def fitted_stacks() -> str:
    """Return one line a stack: its factors, what was fitted of it, and on which rows."""
    rows = [
        [
            code(stack.name),
            ", ".join(_factors(stack)),
            ", ".join(map(code, stack.fit.free)) or "nothing",
            ", ".join(map(code, stack.fit.rows)) or "none",
            f"{100 * stack.fit.spread:g} %: {stack.fit.spread_source}",
        ]
        for stack in map(load_stack, stack_names())
    ]
    return table(["stack", "factors", "fitted constants", "rows that fitted it", "interval"], rows)


def _factors(stack: Stack) -> Iterator[str]:
    for name in _FACTORS:
        for accelerator, value in sorted(getattr(stack.fit, name).items()):
            yield f"{name} of {accelerator} x {value:g}"


def fitted_constants() -> str:
    """Return one line a block of constants: its points, and its error on those held out."""
    files = {}
    for profile in map(load_profile, profile_names()):
        files[profile.machine.constants] = profile.constants
    rows = [
        [
            name.removeprefix("fitted/"),
            record.what,
            str(record.points),
            str(record.held_out_points or ""),
            share(record.held_out_median_error),
            share(record.held_out_p90_error),
            record.source,
        ]
        for name, constants in sorted(files.items())
        for record in constants.fit
        if record.origin is not Origin.NOMINAL
    ]
    header = ["constants", "block", "points", "held out", "median", "p90", "source"]
    return table(header, rows)
