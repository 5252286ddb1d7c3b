"""What a forecast is computed from, and what of it is only assumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from simulator.cost.host_notes import HOST_COPY
from simulator.cost.operators import wide_dtype
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import Profile
from simulator.results import Provenance, StepResult
from simulator.workload.calibrated import interval_source
from simulator.workload.job import TrainingJob
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack


def provenance_of(model: ModelSpec, job: TrainingJob, stack: Stack, profile: Profile) -> Provenance:
    """Return what all forecasts of a job on a machine are computed from, with warnings."""
    constants = profile.constants
    used = [what for what in constants.origins() if _uses(what, model, job)]
    nominal = [what for what in used if what in constants.nominal_blocks()]
    warnings = []
    if nominal:
        degree = "partly" if len(nominal) < len(used) else "not"
        named = ", ".join(nominal)
        warnings.append(f"{profile.name}: {degree} calibrated; assumed: {named}")
    warnings += _narrow(job, stack, constants.accelerator)
    warnings += _experts(model, job, stack, constants.accelerator)
    return Provenance(
        traincast=_version(),
        profile=profile.name,
        profile_sha256=profile.sha256,
        stack=stack.name,
        seed=None,
        constants=constants.origins(),
        used=tuple(used),
        validation=interval_source(stack, constants.software),
        warnings=tuple(warnings),
    )


def _uses(block: str, model: ModelSpec, job: TrainingJob) -> bool:
    """Whether forecasts of a job need a block of constants, such as "gemm.bf16"."""
    kind, _, rest = block.partition(".")
    if block == "gemm.grouped":
        return model.moe is not None
    if block == HOST_COPY:  # `host_warnings` names it where a layout offloads.
        return False
    dtypes = ("", job.precision, wide_dtype(job.precision))
    return kind != "gemm" or rest.split(".")[0] in dtypes


def _narrow(job: TrainingJob, stack: Stack, accelerator: str) -> Iterator[str]:
    """Yield a warning where no run below 16 bits tells how far off the stack is."""
    fitted = {Dtype.FP8: stack.fit.fp8, Dtype.FP4: stack.fit.fp4}
    if job.precision in fitted and accelerator not in fitted[job.precision]:
        yield (
            f"{job.precision}: no constant of {stack.name} was fitted on such runs; "
            "its interval is that of 16-bit ones"
        )


def _experts(model: ModelSpec, job: TrainingJob, stack: Stack, accelerator: str) -> Iterator[str]:
    """Yield what to know of a mixture of experts: fits without any, tokens that are dropped."""
    if model.moe is None:
        return
    if accelerator not in stack.fit.grouped:
        yield (
            f"no constant of {stack.name} was fitted on mixtures of experts; its interval is that "
            "of dense models"
        )
    if job.moe.capacity_factor is not None and job.moe.capacity_factor < 1:
        yield "tokens that the capacity drops count in MFU, and are not computed"


def utilisation_notes(utilisation: float) -> tuple[str, ...]:
    """Return a warning where a model FLOP utilisation is more than a machine can do."""
    if utilisation <= 1:
        return ()
    return (
        "MFU above 100 % counts what is not computed: keys outside the mask or the window, tokens "
        "that the capacity drops; HFU counts what is",
    )


def with_warnings(result: StepResult, warnings: Sequence[str]) -> StepResult:
    """Return a result whose provenance has more warnings."""
    if not warnings:
        return result
    known = result.provenance
    return replace(result, provenance=replace(known, warnings=(*known.warnings, *warnings)))


def _version() -> str:
    try:
        return version("traincast")
    except PackageNotFoundError:
        return "not installed"
