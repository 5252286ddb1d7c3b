"""The fitted overlay of a profile: constants of kernels and collectives, with provenance."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from simulator.files import FileRecord
from simulator.hardware.accelerator import Dtype
from simulator.hardware.collective_constants import CollectiveConstants
from simulator.hardware.kernel_constants import (
    AttentionConstants,
    GemmConstants,
    MemoryBoundConstants,
)
from simulator.hardware.software_constants import SoftwareConstants

_MAIN_BLOCKS = ("gemm", "gemm.bf16", "attention", "memory_bound", "collectives")
"""Blocks of every 16-bit run; "gemm" where all formats are one block."""


class Origin(StrEnum):
    """How much a number is worth."""

    NOMINAL = "nominal"
    FITTED = "fitted"
    MEASURED = "measured"


class FitRecord(FileRecord):
    """How one block of constants was fitted, and how well it does on points it did not see."""

    what: str
    """The block: "gemm.bf16", "attention", "collectives", ..."""
    origin: Origin
    source: str
    """Data set and how it was measured, or the assumption."""
    points: int = Field(default=0, ge=0)
    held_out_points: int = Field(default=0, ge=0)
    held_out_median_error: float | None = Field(default=None, ge=0)
    """Median of |predicted / measured - 1| on points left out of the fit."""
    held_out_p90_error: float | None = Field(default=None, ge=0)
    uncertainty: dict[str, float] = Field(default_factory=dict)
    """Standard deviation of the log of each fitted constant; 0.05 is about 5 %."""
    used: tuple[str, ...] = ()
    """Measured points that fitted it, by `calibrate.used_points.digest_of`: a check tells them
    from points that the fit has not seen."""

    @property
    def summary(self) -> str:
        """One line: origin, source, and the error on points left out of the fit."""
        text = f"{self.origin}: {self.source}"
        if self.held_out_median_error is None:
            return text
        return f"{text} (held-out median error {self.held_out_median_error:.1%})"


class FittedConstants(FileRecord):
    """All constants of the cost model of one accelerator and its scale-up domain."""

    accelerator: str
    gemm: dict[Dtype, GemmConstants] = Field(min_length=1)
    attention: AttentionConstants
    memory_bound: MemoryBoundConstants
    collectives: CollectiveConstants
    software: SoftwareConstants | None = None
    """What a calibration measured of the software; None where nothing was."""
    spread: float = Field(default=0.0, ge=0, lt=1)
    """What these constants add to a stack's `spread`, in squares."""
    fit: tuple[FitRecord, ...] = Field(min_length=1)

    def origins(self) -> dict[str, str]:
        """Return for each block how it was come by, from what, and its held-out error."""
        return {record.what: record.summary for record in self.fit}

    @property
    def calibration(self) -> str:
        """How much of what every 16-bit run needs was fitted: "fitted", "partly fitted", "nominal".

        That is products in bf16, attention, memory-bound kernels and collectives; refinements,
        rarer formats, grouped products and host copies are left to `origins`.
        """
        main = [record.origin for record in self.fit if record.what in _MAIN_BLOCKS]
        fitted = [origin for origin in main if origin is not Origin.NOMINAL]
        if not fitted:
            return "nominal"
        return "fitted" if len(fitted) == len(main) else "partly fitted"

    def nominal_blocks(self) -> list[str]:
        """Return the names of the blocks that were assumed rather than fitted."""
        return [record.what for record in self.fit if record.origin is Origin.NOMINAL]
