"""Number formats that share their constants."""

from __future__ import annotations

from collections.abc import Collection

from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmConstants
from simulator.hardware.profile import Profile


def alike_formats(start: Profile, fitted: Collection[str]) -> dict[Dtype, Dtype]:
    """Return format -> the fitted one whose constants the base gives it too; casts aside.

    `fitted` are names of blocks such as "gemm.bf16".
    """
    gemm = start.constants.gemm
    measured = [dtype for dtype in gemm if f"gemm.{dtype.value}" in fitted]
    return {
        dtype: like
        for dtype, constants in gemm.items()
        for like in reversed(measured)
        if dtype not in measured and _bare(constants) == _bare(gemm[like])
    }


def _bare(constants: GemmConstants) -> GemmConstants:
    return constants.model_copy(update={"cast": None})
