"""What moves bytes: memory-bound kernels by class, and copies between host and device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrate.fit_block import BlockModel, Fitting, seconds_of
from calibrate.fit_kernels import four_digits, rounded, with_values
from calibrate.fit_priors import free_constants, prior_spread
from calibrate.log_fit import Array, FreeConstant, find
from calibrate.points import HostCopyPoint, MemoryBoundPoint
from calibrate.records import Record
from simulator.hardware.collective_constants import HostCopyConstants
from simulator.hardware.kernel_constants import MemoryBoundConstants, MemoryClass
from simulator.hardware.profile import Profile

_MEMORY, _COPY = "memory_bound", "host_copy"
_START, _EFFICIENCY = "start", "efficiency"
_LEAST = 1e-4
_FASTEST_COPY = 2.0
"""Over the nominal rate of the host link; a base may name a slower link than the machine has."""


def memory_bound_model() -> BlockModel:
    """Return the block of memory-bound kernels: one start, an efficiency a measured class."""
    return BlockModel(
        name=_MEMORY,
        takes=lambda record: isinstance(record.point, MemoryBoundPoint),
        fit=_fit_memory,
        predict=lambda records, profile: _memory_seconds(
            _kernels(records), profile, profile.constants.memory_bound
        ),
    )


def host_copy_model() -> BlockModel:
    """Return the block of copies between an accelerator and pinned host memory."""
    return BlockModel(
        name=_COPY,
        takes=lambda record: isinstance(record.point, HostCopyPoint),
        fit=_fit_copies,
        predict=lambda records, profile: _copy_seconds(
            _copied(records), profile, profile.constants.collectives.host_copy
        ),
    )


def _fit_memory(records: Sequence[Record], profile: Profile) -> Fitting:
    """Return the profile with t = start + bytes / (efficiency[class] bandwidth) fitted."""
    prior, kernels = profile.constants.memory_bound, _kernels(records)
    measured = seconds_of(records)
    spread = prior_spread(profile.constants, _MEMORY)
    free = free_constants(prior, (_START,), spread, {})
    for kind in sorted({kernel.memory_class for kernel in kernels}):
        free[kind.value] = FreeConstant(
            prior=prior.efficiency[kind], low=_LEAST, high=1.0, spread=spread
        )

    def log_errors(values: dict[str, float]) -> Array:
        predicted = _memory_seconds(kernels, profile, _with_classes(prior, values))
        return np.asarray(np.log(predicted / measured))

    found = find(free, log_errors)
    memory = {_MEMORY: _with_classes(prior, four_digits(found.values))}
    constants = profile.constants.model_copy(update=memory)
    return Fitting(
        profile=profile.model_copy(update={"constants": constants}),
        uncertainty=found.uncertainty,
    )


def _with_classes(prior: MemoryBoundConstants, values: dict[str, float]) -> MemoryBoundConstants:
    classes = {MemoryClass(name): value for name, value in values.items() if name != _START}
    start = {name: value for name, value in values.items() if name == _START}
    efficiency = {**prior.efficiency, **classes}
    return with_values(prior.model_copy(update={_EFFICIENCY: efficiency}), start)


def _memory_seconds(
    kernels: Sequence[MemoryBoundPoint], profile: Profile, constants: MemoryBoundConstants
) -> Array:
    efficiency = np.array([constants.efficiency[kernel.memory_class] for kernel in kernels])
    moved = np.array([kernel.bytes for kernel in kernels])
    bandwidth = profile.accelerator.memory_bandwidth
    seconds: Array = constants.start + moved / (efficiency * bandwidth)
    return seconds


def _fit_copies(records: Sequence[Record], profile: Profile) -> Fitting:
    """Return the profile with T = start + s / (efficiency pcie_bandwidth) fitted."""
    collectives, points = profile.constants.collectives, _copied(records)
    prior, measured = collectives.host_copy, seconds_of(records)
    limits = {_EFFICIENCY: (_LEAST, _FASTEST_COPY)}
    spread = prior_spread(profile.constants, _COPY)
    free = free_constants(prior, (_START, _EFFICIENCY), spread, limits)

    def log_errors(values: dict[str, float]) -> Array:
        predicted = _copy_seconds(points, profile, with_values(prior, values))
        return np.asarray(np.log(predicted / measured))

    found = find(free, log_errors)
    changed = collectives.model_copy(update={_COPY: rounded(prior, found.values)})
    constants = profile.constants.model_copy(update={"collectives": changed})
    return Fitting(
        profile=profile.model_copy(update={"constants": constants}),
        uncertainty=found.uncertainty,
    )


def _copy_seconds(
    points: Sequence[HostCopyPoint], profile: Profile, constants: HostCopyConstants
) -> Array:
    copied = np.array([point.bytes for point in points])
    bandwidth = profile.node.host.pcie_bandwidth
    seconds: Array = constants.start + copied / (constants.efficiency * bandwidth)
    return seconds


def _kernels(records: Sequence[Record]) -> list[MemoryBoundPoint]:
    points = [record.point for record in records if isinstance(record.point, MemoryBoundPoint)]
    assert len(points) == len(records), "the block takes memory-bound kernels only"
    return points


def _copied(records: Sequence[Record]) -> list[HostCopyPoint]:
    points = [record.point for record in records if isinstance(record.point, HostCopyPoint)]
    assert len(points) == len(records), "the block takes host copies only"
    return points
