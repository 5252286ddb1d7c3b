"""Matrix products of one number format, from a few measured shapes and the base's constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from calibrate.fit_block import BlockModel, Fitting, seconds_of
from calibrate.fit_kernels import four_digits, with_values
from calibrate.fit_priors import ASSUMED, free_constants, prior_spread
from calibrate.log_fit import Array, FreeConstant, find
from calibrate.points import GemmPoint
from calibrate.records import Record
from simulator.cost.gemm import gemm_seconds_of
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmConstants, GemmLayout
from simulator.hardware.profile import Profile

_FREE = (
    "efficiency",
    "wave_quantisation",
    "k_overhead",
    "small_tile_penalty",
    "split_start",
    "k_latency",
    "throttle",
    "throttle_time",
    "memory_efficiency",
    "start",
)
_SHAPES = (
    "wave_quantisation",
    "small_tile_penalty",
    "split_start",
    "k_latency",
    "throttle_time",
)
"""Of them those that a base says little of: between the shipped A100, H100 and B200 their logs
spread by 0.9 to 2.7."""
_LIMITS = {
    "efficiency": (1e-4, 1.5),
    "wave_quantisation": (1e-3, 1.0),
    "throttle": (1e-4, 1.0),
    "memory_efficiency": (1e-4, 1.0),
}
_FACTOR_SPREAD = 0.2
"""Of log(factor): layouts differ by some 10 %, a sustained run by 10 to 45 % from a burst."""
_FACTOR = (0.3, 3.0)
_SUSTAINED, _ACCUMULATE = "sustained_factor", "accumulate_factor"
_Kind = tuple[GemmLayout, bool, bool]
_Where = tuple[_Kind, list[int], Array]


def gemm_model(dtype: Dtype, records: Sequence[Record]) -> BlockModel:
    """Return the block of the matrix products of `dtype`."""
    name = f"gemm.{dtype.value}"
    sustained = any(isinstance(r.point, GemmPoint) and r.point.sustained for r in records)

    def takes(record: Record) -> bool:
        return isinstance(record.point, GemmPoint) and record.point.dtype is dtype

    def predict(records: Sequence[Record], profile: Profile) -> Array:
        constants = profile.constants.gemm[dtype]
        return _seconds(_by_kind(records), len(records), dtype, profile, constants)

    def fit(records: Sequence[Record], profile: Profile) -> Fitting:
        return _fit(records, dtype, profile, prior_spread(profile.constants, name, "gemm"))

    replaces = (f"{name}.sustained", f"{name}.layouts") if sustained else ()
    return BlockModel(name=name, takes=takes, fit=fit, predict=predict, replaces=replaces)


def _fit(records: Sequence[Record], dtype: Dtype, profile: Profile, spread: float) -> Fitting:
    """Return the profile with burst constants and factors fitted together.

    A factor is free where some points have it: a backward layout, fp32 accumulation, sustained
    load. Where all points are sustained, its factor and the efficiency share what they say.
    """
    prior, measured = profile.constants.gemm[dtype], seconds_of(records)
    kinds = _by_kind(records)
    free = free_constants(prior, _FREE, spread, _LIMITS) | _free_factors(kinds, prior)
    free |= free_constants(prior, _SHAPES, ASSUMED, _LIMITS)

    def log_errors(values: dict[str, float]) -> Array:
        constants = _with(prior, values)
        predicted = _seconds(kinds, len(records), dtype, profile, constants)
        return np.asarray(np.log(predicted / measured))

    found = find(free, log_errors)
    gemm = {**profile.constants.gemm, dtype: _with(prior, four_digits(found.values))}
    constants = profile.constants.model_copy(update={"gemm": gemm})
    return Fitting(
        profile=profile.model_copy(update={"constants": constants}),
        uncertainty=found.uncertainty,
    )


def _free_factors(kinds: Sequence[_Where], prior: GemmConstants) -> dict[str, FreeConstant]:
    start = {
        layout.value: prior.layout_factor.get(layout, 1.0)
        for (layout, _, _), *_ in kinds
        if layout is not GemmLayout.FORWARD
    }
    if any(accumulate for (_, accumulate, _), *_ in kinds):
        start[_ACCUMULATE] = prior.accumulate_factor
    if any(sustained for (*_, sustained), *_ in kinds):
        start[_SUSTAINED] = prior.sustained_factor
    low, high = _FACTOR
    return {
        name: FreeConstant(prior=value, low=low, high=high, spread=_FACTOR_SPREAD)
        for name, value in start.items()
    }


def _with(prior: GemmConstants, values: Mapping[str, float]) -> GemmConstants:
    layouts = {layout: values[layout.value] for layout in GemmLayout if layout.value in values}
    own = {name: value for name, value in values.items() if name not in tuple(GemmLayout)}
    factors = {**prior.layout_factor, **layouts}
    return with_values(prior.model_copy(update={"layout_factor": factors}), own)


def _by_kind(records: Sequence[Record]) -> list[_Where]:
    """Return for each kind of product the places of its records and their shapes."""
    found: dict[_Kind, list[int]] = {}
    points = [record.point for record in records if isinstance(record.point, GemmPoint)]
    assert len(points) == len(records), "the block takes products only"
    for index, point in enumerate(points):
        kind = (point.layout, point.accumulate, point.sustained)
        found.setdefault(kind, []).append(index)
    return [
        (kind, places, np.array([(points[i].m, points[i].n, points[i].k) for i in places]).T)
        for kind, places in found.items()
    ]


def _seconds(
    kinds: Sequence[_Where],
    count: int,
    dtype: Dtype,
    profile: Profile,
    constants: GemmConstants,
) -> Array:
    seconds = np.zeros(count)
    for (layout, accumulate, sustained), places, shapes in kinds:
        seconds[places] = gemm_seconds_of(
            shapes,
            dtype=dtype,
            gpu=profile.accelerator,
            constants=constants,
            layout=layout,
            accumulate=accumulate,
            sustained=sustained,
        )
    return seconds
