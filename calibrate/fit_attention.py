"""Fused attention, forward and backward, from a few measured calls and the base's constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrate.fit_block import BlockModel, Fitting, seconds_of
from calibrate.fit_kernels import rounded, with_values
from calibrate.fit_priors import free_constants, prior_spread
from calibrate.log_fit import Array, find
from calibrate.points import AttentionPoint
from calibrate.predict import attention_shape
from calibrate.records import Record
from simulator.cost.attention import flash_backward_seconds, flash_forward_seconds
from simulator.hardware.accelerator import Accelerator
from simulator.hardware.kernel_constants import AttentionConstants
from simulator.hardware.profile import Profile

NAME = "attention"
_FORWARD = ("efficiency", "softmax_flops", "k_overhead", "tail", "memory_efficiency", "start")
_BACKWARD = ("backward_factor",)
_LIMITS = {
    "efficiency": (1e-4, 1.0),
    "memory_efficiency": (1e-4, 1.0),
    "backward_factor": (1.0, 10.0),
}


def attention_model(records: Sequence[Record]) -> BlockModel:
    """Return the block of attention; the backward factor is free where it was measured."""
    points = [record.point for record in records if isinstance(record.point, AttentionPoint)]
    backward = any(point.backward for point in points)
    return BlockModel(
        name=NAME,
        takes=lambda record: isinstance(record.point, AttentionPoint),
        fit=_fit,
        predict=_predict,
        replaces=(f"{NAME}.backward",) if backward else (),
    )


def _fit(records: Sequence[Record], profile: Profile) -> Fitting:
    prior, measured = profile.constants.attention, seconds_of(records)
    points = _points(records)
    names = _FORWARD + (_BACKWARD if any(point.backward for point in points) else ())
    free = free_constants(prior, names, prior_spread(profile.constants, NAME), _LIMITS)

    def log_errors(values: dict[str, float]) -> Array:
        predicted = _seconds(points, profile.accelerator, with_values(prior, values))
        return np.asarray(np.log(predicted / measured))

    found = find(free, log_errors)
    fitted = {"attention": rounded(prior, found.values)}
    constants = profile.constants.model_copy(update=fitted)
    return Fitting(
        profile=profile.model_copy(update={"constants": constants}),
        uncertainty=found.uncertainty,
    )


def _predict(records: Sequence[Record], profile: Profile) -> Array:
    return _seconds(_points(records), profile.accelerator, profile.constants.attention)


def _seconds(
    points: Sequence[AttentionPoint], gpu: Accelerator, constants: AttentionConstants
) -> Array:
    return np.array(
        [
            (flash_backward_seconds if point.backward else flash_forward_seconds)(
                attention_shape(point), dtype=point.dtype, gpu=gpu, constants=constants
            )
            for point in points
        ]
    )


def _points(records: Sequence[Record]) -> list[AttentionPoint]:
    points = [record.point for record in records if isinstance(record.point, AttentionPoint)]
    assert len(points) == len(records), "the block takes attention only"
    return points
