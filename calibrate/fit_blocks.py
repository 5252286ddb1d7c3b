"""Fits all blocks of a profile one after another, and judges each on points it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.fit_alike import alike_formats
from calibrate.fit_attention import attention_model
from calibrate.fit_block import BlockModel, Judgement, errors, judge, outliers
from calibrate.fit_collective_blocks import domain_model, network_model, why_not
from calibrate.fit_gemm import gemm_model
from calibrate.fit_input import Rejected
from calibrate.fit_memory import host_copy_model, memory_bound_model
from calibrate.log_fit import Array, held_out
from calibrate.points import (
    CollectivePoint,
    GemmPoint,
    KernelSumPoint,
    LayerPart,
    LayerPoint,
    Point,
    SoakPoint,
)
from calibrate.records import Record
from simulator.hardware.profile import Profile

DISAGREES = "disagrees with the rest"
_ONLY_REPORTED = {
    SoakPoint: "shows how clocks settle; no constant is fitted to it",
    KernelSumPoint: "does not say which shapes the kernels had",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of constants after a fit."""

    name: str
    """As `FitRecord.what` says it."""
    records: tuple[Record, ...]
    """Those that speak of it; all of them fit the final constants."""
    is_fitted: bool
    """False where the base's constants were kept, as the fit was worse on points left out."""
    judgement: Judgement
    """Points left out in turn, of those that were not held out."""
    held_out: Array
    """Errors on a random fifth that neither the fit nor the judgement saw."""
    default_held_out: Array
    """Errors of the base's constants on the same points."""
    uncertainty: dict[str, float]
    """Standard deviation of the log of each constant; empty where the base's were kept."""
    replaces: tuple[str, ...]
    """Records of the base's constants that the fit made untrue."""

    @property
    def unseen(self) -> Array:
        """Errors of the constants in the profile on points left out: the judgement's of its kind.

        Empty where there were too few points to leave any out.
        """
        return self.judgement.fitted if self.is_fitted else self.judgement.default


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedBlocks:
    """A profile with all its blocks fitted, and what was found on the way."""

    profile: Profile
    blocks: tuple[Block, ...]
    rejected: tuple[Rejected, ...]
    """Records that no block took, and those that disagree with the others of their block."""


def fit_blocks(records: Sequence[Record], start: Profile, *, seed: int = 0) -> FittedBlocks:
    """Return `start` with the constants of every block that some record speaks of.

    A random fifth of each block's points is held out; whether the fit is kept is judged on the
    rest; the final constants are then fitted to all points.
    """
    trained = final = start
    blocks: list[Block] = []
    rejected = [
        Rejected(record=r, reason=why) for r in records if (why := _untaken(r, start, records))
    ]
    for model in models_of(records, start):
        own = [record for record in records if model.takes(record)]
        seen, held = _split(own, seed)
        judgement = judge(model, seen, trained)
        default = errors(model, held, trained)
        uncertainty: dict[str, float] = {}
        if judgement.is_better:
            trained = model.fit(seen, trained).profile
            fitting = model.fit(own, final)
            final, uncertainty = fitting.profile, fitting.uncertainty
        off = outliers(model, own, final)
        rejected += [Rejected(record=record, reason=DISAGREES) for record in off]
        blocks.append(
            Block(
                name=model.name,
                records=tuple(own),
                is_fitted=judgement.is_better,
                judgement=judgement,
                held_out=errors(model, held, trained),
                default_held_out=default,
                uncertainty=uncertainty,
                replaces=model.replaces,
            )
        )
    return FittedBlocks(
        profile=_with_alike_formats(final, start, blocks),
        blocks=tuple(blocks),
        rejected=tuple(rejected),
    )


def _split(records: Sequence[Record], seed: int) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
    """Return the records to fit and a random fifth; repeats of a point stay on one side."""
    cells: dict[Point, list[Record]] = {}
    for record in records:
        cells.setdefault(_cell_of(record.point), []).append(record)
    groups = list(cells.values())
    kept, left = held_out(len(groups), seed=seed)
    seen, held = (tuple(record for i in part for record in groups[i]) for part in (kept, left))
    return seen, held


def _cell_of(point: Point) -> Point:
    """Return the point without what makes no difference to a forecast."""
    if not isinstance(point, CollectivePoint):
        return point
    return point.model_copy(update={"in_place": None, "dtype": ""})


def models_of(records: Sequence[Record], machine: Profile) -> list[BlockModel]:
    """Return the blocks that some of the records speak of, in the order in which they build up."""
    formats = {record.point.dtype for record in records if isinstance(record.point, GemmPoint)}
    known = [dtype for dtype in machine.constants.gemm if dtype in machine.accelerator.peak]
    models = [gemm_model(dtype, records) for dtype in known if dtype in formats]
    models += [attention_model(records), memory_bound_model(), host_copy_model()]
    models += [domain_model(machine, records), network_model(machine, records)]
    return [model for model in models if any(map(model.takes, records))]


def summary_of(values: Array) -> tuple[float, float] | None:
    """Return median and 90th percentile; None of nothing."""
    if not values.size:
        return None
    return float(np.median(values)), float(np.quantile(values, 0.9))


def _untaken(record: Record, machine: Profile, records: Sequence[Record]) -> str:
    """Return why no block and no measured software takes a record; empty where one does."""
    point = record.point
    if isinstance(point, CollectivePoint):
        models = (domain_model(machine, records), network_model(machine, records))
        return "" if any(m.takes(record) for m in models) else why_not(point, machine)
    if isinstance(point, GemmPoint):
        known = point.dtype in machine.constants.gemm and point.dtype in machine.accelerator.peak
        return "" if known else f"the base has no peak or no constants for {point.dtype.value}"
    if isinstance(point, LayerPoint) and point.part is LayerPart.OPTIMIZER:
        return "only checked: no constant is fitted to an update by itself"
    return _ONLY_REPORTED.get(type(point), "")


def _with_alike_formats(final: Profile, start: Profile, blocks: Sequence[Block]) -> Profile:
    """Return the profile with formats that the base has alike changed alike.

    A format that was not measured and shares its constants with a measured one in the base (fp16
    with bf16) shares them in the result.
    """
    fitted = [block.name for block in blocks if block.is_fitted]
    gemm = dict(final.constants.gemm)
    for dtype, like in alike_formats(start, fitted).items():
        gemm[dtype] = gemm[like].model_copy(update={"cast": gemm[dtype].cast})
    constants = final.constants.model_copy(update={"gemm": gemm})
    return final.model_copy(update={"constants": constants})
