"""The records of a fit in its profile: how each block was come by, and how well it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from calibrate.fit_alike import alike_formats
from calibrate.fit_apart import is_apart
from calibrate.fit_block import WIDEST
from calibrate.fit_blocks import Block, FittedBlocks, summary_of
from calibrate.fit_input import Measurements
from calibrate.points import (
    InterferencePoint,
    LaunchPoint,
    LayerPoint,
    StepPoint,
    UpkeepPoint,
)
from calibrate.records import Record
from calibrate.used_points import digest_of
from simulator.hardware.accelerator import Dtype
from simulator.hardware.constants import FitRecord, Origin
from simulator.hardware.profile import Profile

_DIGITS = 4
_MAIN = ("attention", "memory_bound", "collectives")
_SOFTWARE = {
    "software.launch": LaunchPoint,
    "software.interference": InterferencePoint,
    "software.passes": LayerPoint,
    "software.upkeep": UpkeepPoint,
    "software.steps": StepPoint,
}


def fit_records(
    fitted: FittedBlocks, start: Profile, measurements: Measurements
) -> tuple[FitRecord, ...]:
    """Return the base's records of what was not measured, and one a block that was."""
    blocks = {block.name: block for block in fitted.blocks}
    source = source_of(measurements)
    new = [_record(block, start, source) for block in fitted.blocks]
    new += list(_measured_records(measurements.usable, source))
    alike = alike_formats(start, [name for name, block in blocks.items() if block.is_fitted])
    new += [_alike_record(dtype, like) for dtype, like in alike.items()]
    replaced = {record.what for record in new}
    replaced |= {name for block in fitted.blocks if block.is_fitted for name in block.replaces}
    kept = [record for record in _split_formats(start) if record.what not in replaced]
    return (*new, *kept)


def profile_spread(fitted: FittedBlocks, start: Profile) -> float:
    """Return what the constants add, in squares, to a stack's spread.

    The root mean square, over matrix products, attention, memory-bound kernels and collectives, of
    the median error on points left out: a step is a sum of many kernels, whose own errors partly
    cancel. A block that was not measured counts with the error that the base states for it, or
    else with the base's spread. At most `WIDEST`.
    """
    blocks = {block.name: block for block in fitted.blocks}
    products = [block for name, block in blocks.items() if name.startswith("gemm.")]
    most = max(products, key=lambda block: len(block.records), default=None)
    names = (most.name if most else "gemm.bf16", *_MAIN)
    each = [_error_of(name, blocks.get(name), start) for name in names]
    return round(min(WIDEST, float(np.sqrt(np.mean(np.square(each))))), _DIGITS)


def source_of(measurements: Measurements) -> str:
    """Return where the points come from: files, days and versions."""
    machine = measurements.fingerprint
    versions = (
        ("torch", machine.torch),
        (machine.backend or "communication library", machine.library),
        ("driver", machine.driver),
    )
    said = ", ".join(f"{name} {version}" for name, version in versions if version)
    files, days = ", ".join(measurements.files), " to ".join(_ends(measurements.dates))
    return f"calibration of {days}: {files}" + (f" ({said})" if said else "")


def _record(block: Block, start: Profile, source: str) -> FitRecord:
    errors = block.held_out if block.held_out.size else block.unseen
    summary = summary_of(errors)
    text = f"{source}; {len(block.records)} points"
    origin = Origin.FITTED
    if not block.is_fitted:
        base = _base_record(block.name, start)
        origin = base.origin if base else Origin.NOMINAL
        own = f"{base.source}; " if base else ""
        text = f"{own}kept: {_comparison(block)} on {len(block.records)} points of the {source}"
    return FitRecord(
        what=block.name,
        origin=origin,
        source=text,
        points=len(block.records) if block.is_fitted else 0,
        held_out_points=int(errors.size),
        held_out_median_error=round(summary[0], _DIGITS) if summary else None,
        held_out_p90_error=round(summary[1], _DIGITS) if summary else None,
        uncertainty={name: float(f"{v:.2g}") for name, v in block.uncertainty.items()},
        used=tuple(digest_of(record.point) for record in block.records) if block.is_fitted else (),
    )


def _alike_record(dtype: Dtype, like: Dtype) -> FitRecord:
    text = f"Assumed: the constants of {like.value}, as shares of the peak of {dtype.value}"
    return FitRecord(what=f"gemm.{dtype.value}", origin=Origin.NOMINAL, source=text)


def _comparison(block: Block) -> str:
    fitted, default = block.judgement.means
    return f"a fit leaves {fitted:.1%} on points left out against {default:.1%}, on average"


def _measured_records(records: Sequence[Record], source: str) -> Iterator[FitRecord]:
    found = {
        what: [record for record in records if isinstance(record.point, kind)]
        for what, kind in _SOFTWARE.items()
    }
    found["collectives.apart"] = [record for record in records if is_apart(record.point)]
    for what, own in found.items():
        if own:
            yield FitRecord(
                what=what,
                origin=Origin.MEASURED,
                source=f"{source}; {len(own)} points",
                points=len(own),
                used=tuple(digest_of(record.point) for record in own),
            )


def _split_formats(start: Profile) -> Iterator[FitRecord]:
    """Yield the base's records; one of all formats of products together as one a format."""
    for record in start.constants.fit:
        if record.what != "gemm":
            yield record
            continue
        for dtype in start.constants.gemm:
            yield record.model_copy(update={"what": f"gemm.{dtype.value}"})


def _base_record(name: str, start: Profile) -> FitRecord | None:
    known = {record.what: record for record in _split_formats(start)}
    return known.get(name) or (known.get("collectives") if name == "network" else None)


def _error_of(name: str, block: Block | None, start: Profile) -> float:
    if block is not None and block.unseen.size:
        return float(np.median(block.unseen))
    base = _base_record(name, start)
    stated = base.held_out_median_error if base else None
    return start.constants.spread if stated is None else stated


def _ends(days: Sequence[str]) -> list[str]:
    return list(dict.fromkeys((days[0], days[-1]))) if days else ["an unknown day"]
