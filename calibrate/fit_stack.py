"""Fits the few free constants of a stack on the step rows that the stack lists.

`python -m calibrate.fit_stack STACK` reads `fit.free` and `fit.rows` of a shipped stack, finds
those rows in the step tables of the validation data, and writes the constants back into the file.
The rows (ten at most) never count as validation.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit
from scipy.optimize import least_squares

from calibrate.validation.cells import Row
from calibrate.validation.reported import measured_step_time, step_time_of_flops
from calibrate.validation.rows import read_table
from calibrate.validation.steps import StepCase, StepForecasts
from simulator.api import Forecaster
from simulator.errors import InputError, Problem
from simulator.files import nearest, read_text, write_atomic
from simulator.hardware.accelerator import Dtype
from simulator.workload.stack import STACK_FOLDER, Stack, load_stack

_SOFT = 0.03
"""Log error above which a row pulls less: rows differ by some per cent from run to run."""
_ROUGH = 0.1
"""The same for the first, rough fit."""
_PRIOR = 0.5
"""Weight, in rows x `_SOFT`, of staying near the start: settles what the rows leave open."""
_DIGITS = 3
_EDGE = 1e-3
"""Share of a constant's range that counts as its edge."""
_PER_ACCELERATOR = ("scale", "attention", "fp8", "fp4", "grouped")
"""Tables of `fit` with a value for each accelerator; written "scale.h100_sxm" here."""
_OF_PRECISION = {"fp8": Dtype.FP8, "fp4": Dtype.FP4}
"""Those that only rows of one precision say something of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """One constant that may be fitted: its range, and where the fit starts."""

    low: float
    high: float
    start: float


FREE = {
    "scale": Free(low=0.7, high=2.0, start=1.0),
    "attention": Free(low=0.7, high=4.0, start=1.0),
    "fp8": Free(low=0.5, high=2.0, start=1.0),
    "fp4": Free(low=0.5, high=2.0, start=1.0),
    "grouped": Free(low=0.5, high=3.0, start=1.0),
    "kernels.memory_factor": Free(low=0.7, high=3.0, start=1.0),
    "kernels.eager_factor": Free(low=0.7, high=6.0, start=1.5),
    "overlap.tensor_fraction": Free(low=0.0, high=1.0, start=0.5),
    "overlap.expert_fraction": Free(low=0.0, high=1.0, start=0.5),
    "kernels.cpu_launch": Free(low=1e-6, high=3e-5, start=8e-6),
    "kernels.cpu_collective": Free(low=5e-6, high=1e-3, start=4e-5),
    "kernels.cpu_experts": Free(low=0.0, high=2e-2, start=5e-3),
}
_Case = tuple[str, StepCase, float]


def fit_stack(stack: Stack, folder: Path) -> dict[str, float]:
    """Return the value of each of the stack's free constants.

    Minimises the arctan loss of log(predicted / measured), which slow outliers hardly move, over
    the stack's rows, starting from the soft-L1 fit.

    Raises:
        InputError: a constant that cannot be fitted, or a row that is not in `folder`.
    """
    _check(stack)
    cases = list(_cases(stack, folder))
    missing = set(stack.fit.rows) - {name for name, _, _ in cases}
    if missing:
        rule = "no such step row"
        raise InputError(*(Problem(where=str(folder), key=name, rule=rule) for name in missing))
    names = _names(stack, cases)
    free = [FREE.get(name) or FREE[name.partition(".")[0]] for name in names]
    low, width = np.array([f.low for f in free]), np.array([f.high - f.low for f in free])
    start = (np.array([f.start for f in free]) - low) / width

    def errors(shares: Any) -> Any:
        values = dict(zip(names, low + width * shares, strict=True))
        log = [_log_error(stack, case, measured, values) for _, case, measured in cases]
        return np.array([*log, *(_PRIOR * _SOFT * (shares - start))])

    shares = start
    losses: tuple[tuple[Any, float], ...] = (("soft_l1", _ROUGH), ("arctan", _SOFT))
    for loss, scale in losses:
        shares = least_squares(
            errors, shares, bounds=(0.0, 1.0), loss=loss, f_scale=scale, diff_step=np.array(1e-3)
        ).x
    best = low + width * shares
    _refuse_bounds(stack, names, shares)
    return {name: float(f"{v:.{_DIGITS}g}") for name, v in zip(names, best, strict=True)}


def _refuse_bounds(stack: Stack, names: Sequence[str], shares: Any) -> None:
    """Raise where a constant ended at the edge of its range: the rows do not settle it."""
    edge = [n for n, x in zip(names, shares, strict=True) if not _EDGE < x < 1 - _EDGE]
    if edge:
        rule = "the fit ends at the edge of this constant's range, so its rows do not settle it"
        fix = "give it a value and leave it out of fit.free"
        raise InputError(*(Problem(where=stack.name, key=n, rule=rule, fix=fix) for n in edge))


def with_constants(stack: Stack, values: Mapping[str, float]) -> Stack:
    """Return a stack with fitted constants put in."""
    for name, value in values.items():
        table, key = name.split(".")
        if table in _PER_ACCELERATOR:
            own = {**getattr(stack.fit, table), key: value}
            fit = stack.fit.model_copy(update={table: own})
            stack = stack.model_copy(update={"fit": fit})
        else:
            record = getattr(stack, table).model_copy(update={key: value})
            stack = stack.model_copy(update={table: record})
    return stack


def write_constants(stack: Stack, values: Mapping[str, float]) -> None:
    """Put fitted constants into the shipped stack file, leaving the rest of it as it stands."""
    path = STACK_FOLDER / f"{stack.name}.toml"
    document: Any = tomlkit.parse(read_text(path))
    for name, value in values.items():
        table, key = name.split(".")
        if table in _PER_ACCELERATOR:
            document["fit"].setdefault(table, tomlkit.inline_table())[key] = value
        else:
            document[table][key] = f"{value * 1e6:g} us" if key.startswith("cpu_") else value
    write_atomic(path, tomlkit.dumps(document))


def _names(stack: Stack, cases: Sequence[_Case]) -> list[str]:
    """Return the free constants, those of `_PER_ACCELERATOR` once for each accelerator.

    Where one of these is named with its accelerator, only that accelerator's is free.
    """
    names: list[str] = []
    for name in stack.fit.free:
        if name in _PER_ACCELERATOR:
            names += [f"{name}.{accelerator}" for accelerator in _accelerators(name, cases)]
        else:
            names.append(name)
    return names


def _accelerators(table: str, cases: Sequence[_Case]) -> list[str]:
    """Return the accelerators of the cases whose time a table of constants changes, sorted."""
    dtype = _OF_PRECISION.get(table)
    told = [case for _, case, _ in cases if dtype in (None, case.job.precision)]
    if table == "grouped":
        told = [case for case in told if case.model.moe is not None]
    return sorted({case.profile.constants.accelerator for case in told})


def _check(stack: Stack) -> None:
    unknown = [name for name in stack.fit.free if not _is_free(name)]
    if unknown:
        rule = "cannot be fitted"
        raise InputError(
            *(
                Problem(
                    where=stack.name,
                    key=f"fit.free: {name}",
                    rule=rule,
                    fix=nearest(name, list(FREE)),
                )
                for name in unknown
            )
        )


def _is_free(name: str) -> bool:
    """Whether a name is one of `FREE`, or that of one accelerator such as "scale.gb200"."""
    table, dot, _ = name.partition(".")
    return name in FREE or (table in _PER_ACCELERATOR and bool(dot))


def _cases(stack: Stack, folder: Path) -> Iterator[_Case]:
    forecasts = StepForecasts(None, None)
    for path in sorted(folder.glob("*.csv")):
        for raw in read_table(path).rows:
            name = raw.cells.get("id", "")
            if name in stack.fit.rows:
                row = Row(raw.cells)
                case = forecasts.read(row)
                measured = measured_step_time(row) or step_time_of_flops(row, case.model)
                assert measured is not None, name
                yield name, case, measured


def _log_error(stack: Stack, case: StepCase, measured: float, values: Mapping[str, float]) -> float:
    changed = with_constants(case.stack, _untouched(stack, case.stack, values))
    forecaster = Forecaster(case.model, case.job, changed, case.profile, case.layout.world_size)
    return float(np.log(forecaster.step_time(case.layout) / measured))


def _untouched(stack: Stack, of_row: Stack, values: Mapping[str, float]) -> Mapping[str, float]:
    """Return the constants that a row does not set itself, as one without overlap does."""

    def same(name: str) -> bool:
        table, key = name.split(".")
        own = table not in _PER_ACCELERATOR
        return not own or getattr(getattr(of_row, table), key) == getattr(
            getattr(stack, table), key
        )

    return {name: value for name, value in values.items() if same(name)}


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stack", help="name of a shipped stack with fit.rows")
    stack = load_stack(parser.parse_args().stack)
    steps = Path(os.environ.get("TRAINCAST_DATA", "../shared/data")) / "steps"
    write_constants(stack, fit_stack(stack, steps))


if __name__ == "__main__":
    _main()
