"""Fitting of how much slower GEMMs run inside training than in a burst, by layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibrate.fit_kernels import KernelFit, four_digits, select
from calibrate.kernel_tables import LayoutTable
from calibrate.log_fit import Array, FreeConstant, Held, Indices, fit_constants, held_out
from simulator.cost.gemm import gemm_seconds_of
from simulator.hardware.accelerator import Accelerator, Dtype
from simulator.hardware.kernel_constants import GemmConstants, GemmLayout

FACTORS = ("sustained_factor", "accumulate_factor", "layout_factor")
"""The constants that are fitted here."""
_LOW, _HIGH = 0.5, 2.5
_SPREAD = 0.2
"""Of log(factor): layouts differ by some 10 %, a sustained run by 10 to 45 %."""
_BACKWARD = (GemmLayout.INPUT_GRADIENT, GemmLayout.WEIGHT_GRADIENT)


def fit_sustained(
    tables: Sequence[LayoutTable],
    *,
    dtype: Dtype,
    gpu: Accelerator,
    burst: GemmConstants,
    seed: int = 0,
) -> KernelFit[GemmConstants]:
    """Return `burst` with the sustained, layout and accumulation factors fitted to `tables`.

    The factors multiply the compute time only. Where a layout was timed only with accumulation,
    its own factor stays near 1 and accumulation takes the difference.
    """
    split = [held_out(len(table.gemms.seconds), seed=seed) for table in tables]
    fitted = [_select(table, fit) for table, (fit, _) in zip(tables, split, strict=True)]
    left = [_select(table, out) for table, (_, out) in zip(tables, split, strict=True)]
    names = ["sustained_factor", "accumulate_factor", *(layout.value for layout in _BACKWARD)]
    one = FreeConstant(prior=1.0, low=_LOW, high=_HIGH, spread=_SPREAD)

    def log_errors(values: dict[str, float]) -> Array:
        return np.log(_ratios(fitted, dtype, gpu, _with_factors(burst, values)))

    found = fit_constants(dict.fromkeys(names, one), log_errors)
    values = four_digits(found)
    constants = _with_factors(burst, values)
    errors = Held(errors=abs(_ratios(left, dtype, gpu, constants) - 1))
    training = np.concatenate([table.gemms.training for table in left])
    return KernelFit(
        constants=constants,
        points=sum(len(table.gemms.seconds) for table in fitted),
        held=errors,
        held_training=errors.where(training),
    )


def _with_factors(burst: GemmConstants, values: dict[str, float]) -> GemmConstants:
    layouts = {layout: values[layout.value] for layout in _BACKWARD}
    own = {name: values[name] for name in ("sustained_factor", "accumulate_factor")}
    return burst.model_copy(update={**own, "layout_factor": layouts})


def _ratios(
    tables: Sequence[LayoutTable], dtype: Dtype, gpu: Accelerator, constants: GemmConstants
) -> Array:
    """Return predicted over measured seconds of all rows."""
    return np.concatenate(
        [
            gemm_seconds_of(
                table.gemms.shapes,
                dtype=dtype,
                gpu=gpu,
                constants=constants,
                layout=table.layout,
                accumulate=table.accumulate,
                sustained=True,
            )
            / table.gemms.seconds
            for table in tables
        ]
    )


def _select(table: LayoutTable, rows: Indices) -> LayoutTable:
    return replace(table, gemms=select(table.gemms, rows))
