"""Re-creates the kernel constants of the shipped profiles from published measurements.

`python -m calibrate.fit_shipped` writes the kernel tables and their `[[fit]]` records into
`hardware_profiles/fitted/*.toml` and leaves every other table alone. The measurements are read
from the folder that `TRAINCAST_DATA` names. It takes about a minute.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

from calibrate.fit_kernels import KernelFit, fit_attention, fit_gemm
from calibrate.fit_memory_bound import fit_memory_bound
from calibrate.fit_profile import FittedKernels, KernelBlocks, read_kernels, write_kernels
from calibrate.fit_shipped_collectives import FITTED_FOLDER, data_folder
from calibrate.fit_sustained import FACTORS, fit_sustained
from calibrate.kernel_tables import read_attention, read_gemms, read_layouts
from calibrate.shipped_kernels import (
    COPIED,
    NOMINAL,
    SHIPPED,
    CopiedKernels,
    GemmSource,
    ShippedKernels,
)
from simulator.files import parse_record, read_toml
from simulator.hardware.accelerator import Accelerator, Dtype
from simulator.hardware.constants import FitRecord, Origin
from simulator.hardware.kernel_constants import (
    AttentionConstants,
    GemmConstants,
    MemoryBoundConstants,
)
from simulator.hardware.profile import PROFILE_FOLDER

HEAD_DIMS = (64, 128, 256)
"""Heads of 192 and 512 run other kernels (latent attention) in the tables."""
_LAYOUTS = "simumax_gemm_layouts"
_MEMORY = "memop_neusight"
_DIGITS = 4
_LONG_BURST = "Assumed: GEMMs without end are as fast as one long burst; none were timed"
_LIKE_A100 = "Assumed: the shares of the A100; start as of the smallest GEMMs in a CUDA graph"
_BACKWARD = (
    "Assumed: compute of the backward pass 2.9 times the forward pass's, 5 products against 2 at "
    "63 to 73 % of the peak (Dao, FlashAttention-2, 2023, abstract); no slower in a training run"
)


def main() -> None:
    """Fit and write all shipped files."""
    for shipped in SHIPPED:
        _write(shipped.file, fit_kernels(shipped, data_folder() / "kernels"))
    for copied in COPIED:
        _write(copied.file, copy_kernels(copied))


def fit_kernels(shipped: ShippedKernels, tables: Path) -> FittedKernels:
    """Return the kernel constants of one file, fitted to the CSV files in `tables`."""
    prior = read_kernels(_path(NOMINAL))
    machine = read_toml(PROFILE_FOLDER / f"{shipped.profile}.toml")
    gpu = parse_record(Accelerator, machine["accelerator"], shipped.profile)
    gemm: dict[Dtype, GemmConstants] = {}
    records: list[FitRecord] = []
    for dtype, source in shipped.gemm.items():
        gemm[dtype], found = _gemm(dtype, source, gpu, prior.gemm[dtype], tables)
        records.append(found)
    gemm, slower = _in_training(gemm, shipped, gpu, tables)
    records += slower
    for dtype, like in shipped.same.items():
        gemm[dtype] = gemm[like].model_copy(update={"cast": None})
        text = f"Assumed: the constants of {like.value}, as shares of the peak of {dtype.value}"
        records.append(_nominal(f"gemm.{dtype.value}", text))
    attention, found = _attention(shipped, gpu, prior.attention, tables)
    memory, memory_record = _memory_bound(shipped, prior.memory_bound, tables)
    records += [found, _nominal("attention.backward", _BACKWARD), memory_record]
    blocks = KernelBlocks(gemm=gemm, attention=attention, memory_bound=memory)
    return FittedKernels(blocks=blocks, records=tuple(records))


def copy_kernels(copied: CopiedKernels) -> FittedKernels:
    """Return the kernel constants of another file, marked as assumed."""
    text = f"Assumed: the constants of {copied.of}: {copied.assumption}"
    records = tuple(_nominal(what, text) for what in KernelBlocks.model_fields)
    return FittedKernels(blocks=read_kernels(_path(copied.of)), records=records)


def _gemm(
    dtype: Dtype, source: GemmSource, gpu: Accelerator, nominal: GemmConstants, tables: Path
) -> tuple[GemmConstants, FitRecord]:
    changes = {"tiles": source.tiles, "splits": source.splits, "sustained_factor": 1.0}
    prior = nominal.model_copy(update=changes if source.cast else {**changes, "cast": None})
    most = source.most or math.inf
    read = [
        read_gemms(tables / f"{name}.csv", dtype, least=source.least, most=most)
        for name in source.tables
    ]
    fit = fit_gemm(read, dtype=dtype, gpu=gpu, prior=prior)
    text = f"{_files(*source.tables)}: {source.timed}"
    return fit.constants, _fitted(f"gemm.{dtype.value}", text, fit)


def _in_training(
    burst: dict[Dtype, GemmConstants], shipped: ShippedKernels, gpu: Accelerator, tables: Path
) -> tuple[dict[Dtype, GemmConstants], list[FitRecord]]:
    """Return the constants with their factors of a training run; those of bf16 serve all."""
    if not shipped.sustained:
        return burst, [_nominal(f"gemm.{d.value}.sustained", _LONG_BURST) for d in burst]
    read = read_layouts(tables / f"{_LAYOUTS}.csv", shipped.sustained)
    fit = fit_sustained(read, dtype=Dtype.BF16, gpu=gpu, burst=burst[Dtype.BF16])
    factors = {name: getattr(fit.constants, name) for name in FACTORS}
    text = f"{_files(_LAYOUTS)}: three layouts, timed on training nodes"
    records = [_fitted(f"gemm.{Dtype.BF16.value}.sustained", text, fit)]
    if shipped.only_layouts:
        del factors["sustained_factor"]
        text = f"{_files(_LAYOUTS)}: only the ratios between layouts, since {shipped.only_layouts}"
        records = [_fitted(f"gemm.{Dtype.BF16.value}.layouts", text, fit)]
        records += [_nominal(f"gemm.{d.value}.sustained", _LONG_BURST) for d in burst]
    constants = {dtype: own.model_copy(update=factors) for dtype, own in burst.items()}
    for dtype in burst:
        if dtype is not Dtype.BF16:
            what = f"gemm.{dtype.value}.sustained"
            records.append(_nominal(what, "Assumed: as much slower than a burst as in bf16"))
    return constants, records


def _attention(
    shipped: ShippedKernels, gpu: Accelerator, prior: AttentionConstants, tables: Path
) -> tuple[AttentionConstants, FitRecord]:
    read = read_attention(tables / f"{shipped.attention}.csv", HEAD_DIMS)
    fit = fit_attention(read, dtype=Dtype.BF16, gpu=gpu, prior=prior)
    text = f"{_files(shipped.attention)}: bursts, causal, with the write of the inference cache"
    return fit.constants, _fitted("attention", text, fit)


def _memory_bound(
    shipped: ShippedKernels, prior: MemoryBoundConstants, tables: Path
) -> tuple[MemoryBoundConstants, FitRecord]:
    if not shipped.memory_bound:
        return prior, _nominal("memory_bound", _LIKE_A100)
    path = tables / f"{_MEMORY}.csv"
    constants, points = fit_memory_bound(path, shipped.memory_bound, prior)
    text = (
        f"{_files(_MEMORY)}: medians over operators and two PCIe cards; start, cross entropy, "
        "embedding, optimizer and copy are assumed"
    )
    record = FitRecord(what="memory_bound", origin=Origin.FITTED, source=text, points=points)
    return constants, record


def _fitted(
    what: str, source: str, fit: KernelFit[GemmConstants] | KernelFit[AttentionConstants]
) -> FitRecord:
    return FitRecord(
        what=what,
        origin=Origin.FITTED,
        source=source,
        points=fit.points,
        held_out_points=len(fit.held.errors),
        held_out_median_error=round(fit.held.median, _DIGITS),
        held_out_p90_error=round(fit.held.p90, _DIGITS),
    )


def _nominal(what: str, source: str) -> FitRecord:
    return FitRecord(what=what, origin=Origin.NOMINAL, source=source)


def _files(*names: str) -> str:
    return ", ".join(f"kernels/{name}.csv" for name in names)


def _path(file: str) -> Path:
    return FITTED_FOLDER / f"{file}.toml"


def _write(file: str, kernels: FittedKernels) -> None:
    write_kernels(_path(file), file, kernels)
    for record in kernels.records:
        if record.held_out_median_error is not None and record.held_out_p90_error is not None:
            sys.stdout.write(
                f"{file} {record.what}: {record.points} points; held out "
                f"{record.held_out_points}: median {record.held_out_median_error:.1%}, "
                f"p90 {record.held_out_p90_error:.1%}\n"
            )


if __name__ == "__main__":
    main()
