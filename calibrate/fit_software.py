"""What was measured of the software: launches, slowdowns, passes over parts of a model, steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from statistics import median
from typing import Any

import numpy as np

from calibrate.fit_block import WIDEST
from calibrate.fit_kernels import as_written
from calibrate.fit_passes import measured_passes
from calibrate.fit_upkeep import measured_upkeep
from calibrate.log_fit import Array
from calibrate.points import (
    InterferencePoint,
    Launch,
    LaunchPoint,
    StepPoint,
)
from calibrate.predict import UnpredictedError, predict
from calibrate.predict_steps import layer_stack
from calibrate.records import Record
from simulator.hardware.profile import Profile
from simulator.hardware.software_constants import (
    KernelClass,
    MeasuredPass,
    MeasuredUpkeep,
    SoftwareConstants,
)

STEPS_FOR_SPREAD = 5
"""Fewer steps do not tell how much steps scatter."""
INTERVAL = 0.8
"""Share of steps that lie inside the interval of a forecast."""
_FASTEST, _SLOWEST = 1.0, 10.0
"""A slowdown below 1 is noise; the limit above is that of `SoftwareConstants`."""


def measured_software(records: Sequence[Record], machine: Profile) -> SoftwareConstants | None:
    """Return what needs no model: launches, slowdowns and passes; None where nothing was measured.

    Slowdowns are medians over the points of a class of kernels. What was not measured is as the
    machine's profile has it: of the same stack, or of the machine alone.
    """
    software = SoftwareConstants(
        stack=_stack(records, machine),
        cpu_launch=_launch(records, Launch.KERNEL),
        cpu_collective=_launch(records, Launch.COLLECTIVE),
        compute_slowdown=_compute_slowdowns(records),
        comm_slowdown=_comm_slowdown(records),
        passes=tuple(measured_passes(records)),
        upkeep=tuple(measured_upkeep(records)),
    )
    nothing = SoftwareConstants(stack=software.stack)
    any_step = any(isinstance(record.point, StepPoint) for record in records)
    before = machine.constants.software
    if software == nothing and not any_step:
        return before
    return software if before is None else _on_top_of(before, software)


def _on_top_of(before: SoftwareConstants, software: SoftwareConstants) -> SoftwareConstants:
    """Return what was measured, and what was known before of what was not."""
    update: dict[str, Any] = {
        "compute_slowdown": before.compute_slowdown | software.compute_slowdown,
        "comm_slowdown": software.comm_slowdown or before.comm_slowdown,
    }
    if before.stack == software.stack:
        passes = {_part_of(known): known for known in (*before.passes, *software.passes)}
        upkeep = {_layer_of(known): known for known in (*before.upkeep, *software.upkeep)}
        update |= {
            "cpu_launch": _first_known(software.cpu_launch, before.cpu_launch),
            "cpu_collective": _first_known(software.cpu_collective, before.cpu_collective),
            "passes": tuple(passes.values()),
            "upkeep": tuple(upkeep.values()),
            "step_scale": before.step_scale,
            "step_spread": before.step_spread,
        }
    return software.model_copy(update=update)


def _part_of(measured: MeasuredPass) -> Hashable:
    return measured.model_copy(update={"forward": 0.0, "backward": 0.0})


def _layer_of(measured: MeasuredUpkeep) -> Hashable:
    times = ("gather", "reduce", "buckets", "update")
    return measured.model_copy(update=dict.fromkeys(times))


def _first_known(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def scaled_to_steps(records: Sequence[Record], profile: Profile) -> Profile:
    """Return the profile with the step scale of measured steps, and their spread.

    The scale is the median of measured over modelled time of steps on one device; it is kept where
    it makes their median error smaller, each judged by the scale of the others; a single step is
    believed. The spread is the 80th percentile of the errors of all steps with that scale, at most
    `WIDEST`. Steps on one device that fewer ranks ran at once than others, and those of another
    stack than the software's, say nothing of it.
    """
    software = profile.constants.software
    if software is None:
        return profile
    steps = [record for record in records if _is_step_of(software.stack, record)]
    if not steps:
        return profile
    software = software.model_copy(update={"step_scale": 1.0, "step_spread": None})
    profile = _with(profile, software)
    alone = _most_at_once([record for record in steps if _world(record) == 1])
    ratios = np.exp(-_log_errors(alone, profile))
    scale = as_written(float(np.median(ratios))) if ratios.size else 1.0
    if ratios.size > 1 and np.median(abs(ratios / _others(ratios) - 1)) > np.median(
        abs(ratios - 1)
    ):
        scale = 1.0
    scaled = _with(profile, software.model_copy(update={"step_scale": scale}))
    together = [record for record in steps if _world(record) > 1]
    errors = abs(np.expm1(_log_errors([*alone, *together], scaled)))
    if errors.size < STEPS_FOR_SPREAD or not errors.any():
        return scaled
    spread = as_written(min(WIDEST, float(np.quantile(errors, INTERVAL))))
    return _with(scaled, software.model_copy(update={"step_scale": scale, "step_spread": spread}))


def _with(profile: Profile, software: SoftwareConstants) -> Profile:
    constants = profile.constants.model_copy(
        update={"software": SoftwareConstants.model_validate(software.model_dump())}
    )
    return profile.model_copy(update={"constants": constants})


def _stack(records: Iterable[Record], machine: Profile) -> str:
    ran = Counter(r.point.job.stack for r in records if isinstance(r.point, StepPoint))
    return ran.most_common(1)[0][0] if ran else layer_stack(machine)


def _is_step_of(stack: str, record: Record) -> bool:
    return isinstance(record.point, StepPoint) and record.point.job.stack == stack


def _launch(records: Iterable[Record], what: Launch) -> float | None:
    times = [
        record.seconds
        for record in records
        if isinstance(record.point, LaunchPoint)
        and record.point.launch is what
        and record.seconds is not None
    ]
    return as_written(median(times)) if times else None


def _compute_slowdowns(records: Iterable[Record]) -> dict[KernelClass, float]:
    found: dict[KernelClass, list[float]] = {}
    for record in records:
        if isinstance(record.point, InterferencePoint):
            ratio = _ratio(record, "compute_beside", "compute_alone")
            if ratio is not None:
                found.setdefault(KernelClass(record.point.kernel), []).append(ratio)
    return {kernel: _slowdown(ratios) for kernel, ratios in found.items()}


def _comm_slowdown(records: Iterable[Record]) -> float | None:
    ratios = [
        _ratio(record, "communication_beside", "communication_alone")
        for record in records
        if isinstance(record.point, InterferencePoint)
    ]
    known = [ratio for ratio in ratios if ratio is not None]
    return _slowdown(known) if known else None


def slowdown_notes(records: Iterable[Record]) -> list[str]:
    """Return what was measured of interference that a profile cannot state as it is."""
    notes = []
    for record in records:
        for side in ("compute", "communication"):
            ratio = _ratio(record, f"{side}_beside", f"{side}_alone")
            if ratio is not None and not _FASTEST <= ratio <= _SLOWEST:
                counted = _FASTEST if ratio < _FASTEST else _SLOWEST
                notes.append(
                    f"{side} took {ratio:.2f} of its time alone while both ran; where the median "
                    f"is so, it counts as {counted:g}"
                )
    return notes


def _ratio(record: Record, above: str, below: str) -> float | None:
    if above not in record.values or not record.values.get(below):
        return None
    return record.values[above] / record.values[below]


def _slowdown(ratios: Sequence[float]) -> float:
    return as_written(min(_SLOWEST, max(_FASTEST, median(ratios))))


def _world(record: Record) -> int:
    return record.point.layout.world_size if isinstance(record.point, StepPoint) else 0


def _most_at_once(records: Sequence[Record]) -> list[Record]:
    """Return the steps that most ranks ran at once: as busy as in training is a host only then."""
    ranks = [r.point.ranks if isinstance(r.point, StepPoint) else 0 for r in records]
    most = max(ranks, default=0)
    return [record for record, count in zip(records, ranks, strict=True) if count == most]


def _log_errors(records: Sequence[Record], profile: Profile) -> Array:
    errors = []
    for record in records:
        try:
            predicted = predict(record, profile).seconds
        except UnpredictedError:
            continue
        if record.seconds is not None:
            errors.append(np.log(predicted / record.seconds))
    return np.array(errors)


def _others(ratios: Array) -> Array:
    """Return for each value the median of all others."""
    return np.array([np.median(np.delete(ratios, index)) for index in range(ratios.size)])
