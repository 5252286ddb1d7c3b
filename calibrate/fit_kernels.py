"""Fitting of the kernel constants to tables of measured times; pure, needs no accelerator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from calibrate.kernel_tables import AttentionTable, GemmTable
from calibrate.log_fit import Array, FreeConstant, Held, Indices, fit_constants, held_out
from simulator.cost.attention import flash_forward_seconds
from simulator.cost.gemm import gemm_seconds_of
from simulator.files import FileRecord
from simulator.hardware.accelerator import Accelerator, Dtype
from simulator.hardware.kernel_constants import AttentionConstants, GemmConstants

Constants = TypeVar("Constants", bound=FileRecord)

POINTS = 1500
"""Points that a fit looks at; more do not change the constants."""
DIGITS = 4
"""Of a constant in a file."""
_SMALL_WEIGHT = 0.4
"""Of a point smaller than those of a training step."""
_GEMM_BOUNDS = {
    "efficiency": (0.1, 1.5),
    "wave_quantisation": (1e-3, 1.0),
    "k_overhead": (1.0, 3000.0),
    "small_tile_penalty": (1e-3, 2.0),
    "split_start": (1e-8, 2e-5),
    "k_latency": (1e-13, 5e-9),
    "throttle": (1e-3, 0.5),
    "throttle_time": (2e-5, 5e-3),
    "memory_efficiency": (0.2, 1.0),
    "start": (1e-7, 2e-5),
}
_CAST_BOUNDS = {
    "cast.start": (1e-7, 2e-5),
    "cast.row": (1e-11, 1e-7),
    "cast.element": (1e-13, 1e-8),
    "cast.rows_in_flight": (0.1, 50.0),
}
_ATTENTION_BOUNDS = {
    "efficiency": (0.2, 1.0),
    "softmax_flops": (1.0, 2000.0),
    "k_overhead": (1.0, 3000.0),
    "tail": (0.05, 8.0),
    "memory_efficiency": (0.1, 1.0),
    "start": (1e-7, 3e-5),
    "cache_efficiency": (0.02, 2.0),
    "cache_token": (1e-13, 1e-7),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFit(Generic[Constants]):
    """Fitted constants and their errors on the points left out."""

    constants: Constants
    points: int
    held: Held
    held_training: Held
    """Of the training-size points only."""


def fit_gemm(
    tables: Sequence[GemmTable],
    *,
    dtype: Dtype,
    gpu: Accelerator,
    prior: GemmConstants,
    seed: int = 0,
) -> KernelFit[GemmConstants]:
    """Return the constants of `dtype` fitted to `tables`, each with the same weight.

    Where `prior` has a cast, the tables are taken to time it together with the GEMM.
    """
    split = [held_out(len(table.seconds), seed=seed) for table in tables]
    parts = [
        select(table, fit[: POINTS // len(tables)])
        for table, (fit, _) in zip(tables, split, strict=True)
    ]
    fitted = _joined(parts)
    weight = np.where(fitted.training, 1.0, _SMALL_WEIGHT)
    bounds = _GEMM_BOUNDS | (_CAST_BOUNDS if prior.cast else {})

    def log_errors(values: dict[str, float]) -> Array:
        constants = with_values(prior, values)
        return weight * np.log(predict_gemms(fitted, dtype, gpu, constants) / fitted.seconds)

    constants = rounded(prior, fit_constants(_free(prior, bounds), log_errors))
    left = _joined([select(table, out) for table, (_, out) in zip(tables, split, strict=True)])
    errors = Held(errors=abs(predict_gemms(left, dtype, gpu, constants) / left.seconds - 1))
    return KernelFit(
        constants=constants,
        points=len(fitted.seconds),
        held=errors,
        held_training=errors.where(left.training),
    )


def fit_attention(
    table: AttentionTable,
    *,
    dtype: Dtype,
    gpu: Accelerator,
    prior: AttentionConstants,
    seed: int = 0,
) -> KernelFit[AttentionConstants]:
    """Return the attention constants fitted to `table`."""
    fit, out = held_out(len(table.seconds), seed=seed)
    fit = fit[:POINTS]
    weight = np.where(table.training[fit], 1.0, _SMALL_WEIGHT)

    def log_errors(values: dict[str, float]) -> Array:
        predicted = predict_attention(table, fit, dtype, gpu, with_values(prior, values))
        return weight * np.log(predicted / table.seconds[fit])

    constants = rounded(prior, fit_constants(_free(prior, _ATTENTION_BOUNDS), log_errors))
    predicted = predict_attention(table, out, dtype, gpu, constants)
    errors = Held(errors=abs(predicted / table.seconds[out] - 1))
    return KernelFit(
        constants=constants,
        points=len(fit),
        held=errors,
        held_training=errors.where(table.training[out]),
    )


def predict_gemms(
    table: GemmTable, dtype: Dtype, gpu: Accelerator, constants: GemmConstants
) -> Array:
    """Return the predicted burst seconds of each GEMM, with its cast where one is known."""
    return gemm_seconds_of(table.shapes, dtype=dtype, gpu=gpu, constants=constants, cast_input=True)


def predict_attention(
    table: AttentionTable,
    rows: Indices,
    dtype: Dtype,
    gpu: Accelerator,
    constants: AttentionConstants,
) -> Array:
    """Return the predicted burst seconds of the chosen rows, with the cache write."""
    return np.array(
        [
            flash_forward_seconds(
                table.shapes[row], dtype=dtype, gpu=gpu, constants=constants, write_cache=True
            )
            for row in rows
        ]
    )


def with_values(record: Constants, values: Mapping[str, float]) -> Constants:
    """Return `record` with the named constants replaced; `a.b` names one of an inner record."""
    own = {name: value for name, value in values.items() if "." not in name}
    inner: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        outer, _, rest = name.partition(".")
        if rest:
            inner.setdefault(outer, {})[rest] = value
    nested = {name: with_values(getattr(record, name), part) for name, part in inner.items()}
    return record.model_copy(update=own | nested)


def _free(prior: FileRecord, bounds: Mapping[str, tuple[float, float]]) -> dict[str, FreeConstant]:
    return {
        name: FreeConstant(prior=_value(prior, name), low=low, high=high)
        for name, (low, high) in bounds.items()
    }


def _value(record: FileRecord, name: str) -> float:
    outer, _, rest = name.partition(".")
    inner = getattr(record, outer)
    return _value(inner, rest) if rest else float(inner)


def rounded(prior: Constants, values: Mapping[str, float]) -> Constants:
    """Return `prior` with the fitted values as a file will hold them, and checked."""
    record = with_values(prior, four_digits(values))
    return type(prior).model_validate(record.model_dump())


def four_digits(values: Mapping[str, float]) -> dict[str, float]:
    """Return values as a file will hold them; a search must not see such steps."""
    return {name: as_written(value) for name, value in values.items()}


def as_written(value: float) -> float:
    """Return a value with the digits that a file has of it."""
    return float(f"{value:.{DIGITS}g}")


def select(table: GemmTable, rows: Indices) -> GemmTable:
    """Return the chosen rows of a table."""
    return replace(table, shapes=table.shapes[:, rows], seconds=table.seconds[rows])


def _joined(tables: Sequence[GemmTable]) -> GemmTable:
    return GemmTable(
        shapes=np.concatenate([table.shapes for table in tables], axis=1),
        seconds=np.concatenate([table.seconds for table in tables]),
    )
