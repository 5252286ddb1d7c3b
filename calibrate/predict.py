"""The forecast of one measured point with a profile: what a check compares and a report draws."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from calibrate.point_groups import UnpredictedError, group_of, has_its_share
from calibrate.points import (
    AttentionPoint,
    CollectivePoint,
    GemmPoint,
    HostCopyPoint,
    InterferencePoint,
    KernelSumPoint,
    Launch,
    LaunchPoint,
    LayerPoint,
    MemoryBoundPoint,
    SoakPoint,
    StepPoint,
    Timing,
    UpkeepPoint,
)
from calibrate.predict_steps import launches_itself, predict_layer, predict_step
from calibrate.records import Record
from simulator.cost.attention import flash_backward_seconds, flash_forward_seconds
from simulator.cost.collectives.select import plan_collective
from simulator.cost.gemm import gemm_seconds
from simulator.cost.memory_bound import memory_bound_seconds
from simulator.errors import InputError
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import Profile
from simulator.hardware.software_constants import SoftwareConstants
from simulator.parallel.groups import Collective, GroupShape
from simulator.workload.operator import AttentionShape

__all__ = ["Forecast", "UnpredictedError", "attention_shape", "measured_seconds", "predict"]

OTHER_SHARE = (
    "a group of kind {kind} has another share of the links than a run's groups: it is there to be "
    "compared"
)
AT_ONCE = "run by {ranks} ranks at once: it is there to tell which of them is slow"
_NO_FORECAST: dict[type, str] = {
    SoakPoint: "a soak shows how clocks settle; it has no forecast",
    KernelSumPoint: "a sum over kernels does not say which shapes they had",
    UpkeepPoint: "what parameters cost beside passes is measured and looked up, not modelled",
}
_ALONE = GroupShape(size=1, per_domain=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a profile says of one point."""

    seconds: float
    allocated: float | None = None
    """Of a step: bytes of the fullest rank, as the framework's allocator counts them."""


def predict(record: Record, profile: Profile, folder: Path | None = None) -> Forecast:
    """Return the forecast of what a record measured; files that it names lie in `folder`.

    Raises:
        UnpredictedError: the kind of point has no forecast, or the profile has not what it needs.
    """
    try:
        return _predict(record, profile, folder)
    except InputError as error:
        raise UnpredictedError(str(error).partition("\n")[0]) from error


def measured_seconds(record: Record) -> float | None:
    """Return the measured seconds that the forecast of a record is compared with."""
    if isinstance(record.point, InterferencePoint):
        return record.values.get("compute_beside")
    return record.seconds


def attention_shape(point: AttentionPoint) -> AttentionShape:
    """Return an attention call as the cost model sees it."""
    return AttentionShape(
        batch=point.batch,
        seq_q=point.seq,
        seq_k=point.seq,
        heads=point.heads,
        kv_heads=point.kv_heads,
        head_dim=point.head_dim,
        causal=point.causal,
    )


def _predict(record: Record, profile: Profile, folder: Path | None) -> Forecast:
    allocated: float | None = None
    match point := record.point:
        case GemmPoint():
            seconds = _gemm(point, profile)
        case AttentionPoint():
            seconds = _attention(point, profile)
        case MemoryBoundPoint():
            seconds = _memory_bound(point, profile)
        case HostCopyPoint():
            plan = plan_collective(Collective.HOST_COPY, point.bytes, _ALONE, profile)
            seconds = plan.seconds
        case LaunchPoint():
            seconds = _launch(point, profile)
        case CollectivePoint():
            seconds = _collective(point, profile)
        case InterferencePoint():
            seconds = _beside(point, record, profile)
        case LayerPoint():
            _check_dtype(point.dtype, profile)
            seconds = predict_layer(point, profile, folder)
        case StepPoint():
            _check_dtype(point.job.precision, profile)
            seconds, allocated = predict_step(point, profile, folder)
        case SoakPoint() | KernelSumPoint() | UpkeepPoint():
            raise UnpredictedError(_NO_FORECAST[type(point)])
        case _:
            assert_never(point)
    return Forecast(seconds=seconds, allocated=allocated)


def _gemm(point: GemmPoint, profile: Profile) -> float:
    _check_alone(point)
    _check_dtype(point.dtype, profile)
    return gemm_seconds(
        point.m,
        point.n,
        point.k,
        dtype=point.dtype,
        gpu=profile.accelerator,
        constants=profile.constants.gemm[point.dtype],
        accumulate=point.accumulate,
        layout=point.layout,
        sustained=point.sustained,
    )


def _attention(point: AttentionPoint, profile: Profile) -> float:
    seconds_of = flash_backward_seconds if point.backward else flash_forward_seconds
    return seconds_of(
        attention_shape(point),
        dtype=point.dtype,
        gpu=profile.accelerator,
        constants=profile.constants.attention,
    )


def _memory_bound(point: MemoryBoundPoint, profile: Profile) -> float:
    _check_alone(point)
    return memory_bound_seconds(
        point.bytes,
        point.memory_class,
        gpu=profile.accelerator,
        constants=profile.constants.memory_bound,
    )


def _launch(point: LaunchPoint, profile: Profile) -> float:
    software = _software(profile)
    kernel = point.launch is Launch.KERNEL
    seconds = software.cpu_launch if kernel else software.cpu_collective
    if seconds is None:
        raise UnpredictedError(f"{profile.name} has no launch time of a {point.launch}")
    return float(seconds)


def _collective(point: CollectivePoint, profile: Profile) -> float:
    if point.timing is Timing.ISOLATED and not launches_itself(profile):
        raise UnpredictedError("a call timed alone holds its launch; forecasts are of device time")
    if point.timing is Timing.APART:
        raise UnpredictedError("ranks started apart; forecasts of one call are of ranks together")
    group = group_of(point, profile)
    if group.domains > 1 and profile.node.nic is not None and not has_its_share(point, profile):
        raise UnpredictedError(OTHER_SHARE.format(kind=point.group.value))
    return plan_collective(point.collective, point.bytes, group, profile).seconds


def _beside(point: InterferencePoint, record: Record, profile: Profile) -> float:
    """Return the seconds of the kernel while the collective runs: k times its time alone."""
    slowdown = _software(profile).compute_slowdown.get(point.kernel)
    alone = record.values.get("compute_alone")
    if slowdown is None or alone is None:
        raise UnpredictedError(f"no slowdown of {point.kernel} was fitted or measured")
    return slowdown * alone


def _software(profile: Profile) -> SoftwareConstants:
    if profile.constants.software is None:
        raise UnpredictedError(f"{profile.name} has no constants of the software")
    return profile.constants.software


def _check_alone(point: GemmPoint | MemoryBoundPoint) -> None:
    if point.ranks > 1:
        raise UnpredictedError(AT_ONCE.format(ranks=point.ranks))


def _check_dtype(dtype: Dtype, profile: Profile) -> None:
    if dtype not in profile.accelerator.peak or dtype not in profile.constants.gemm:
        raise UnpredictedError(f"{profile.name} has no peak or no constants for {dtype}")
