"""Which tables each shipped file of kernel constants is fitted to, and what is copied where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.hardware.accelerator import Dtype

NOMINAL = "nominal_gpu"
"""The file whose constants are the priors of all fits."""
Tiles = tuple[tuple[int, int], ...]

_WIDE: Tiles = ((64, 64), (64, 128), (128, 128), (128, 256), (256, 128))
_TALL: Tiles = ((64, 64), (128, 128), (256, 128))
_FLAT: Tiles = ((64, 128), (128, 128), (256, 128))
"""Sets of tiles; a machine takes the one that leaves the smallest held-out error."""
_ANY_SPLIT = (1, 2, 3, 4, 6)
_EVEN_SPLIT = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmSource:
    """The tables of one dtype, and the choices its library has."""

    tables: tuple[str, ...]
    timed: str
    """How they were timed."""
    tiles: Tiles
    splits: tuple[int, ...]
    cast: bool = False
    """Whether the times hold the cast of the activations too."""
    least: int = 0
    """Shapes with m, n or k below this are left out."""
    most: int | None = None
    """Shapes with n or k above this are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedKernels:
    """One file of fitted constants, refitted from published tables."""

    file: str
    profile: str
    """Whose accelerator the tables were measured on."""
    gemm: Mapping[Dtype, GemmSource]
    attention: str
    sustained: str = ""
    """Name of the GPU in the table of sustained GEMMs; empty where it has none."""
    only_layouts: str = ""
    """Why of that table only the ratios between layouts are taken; empty: all is taken."""
    memory_bound: str = ""
    """Name of the GPU in the table of memory-bound operators; empty where it has none."""
    same: Mapping[Dtype, Dtype] = field(default_factory=dict)
    """Dtypes that were not measured -> the one whose constants they take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedKernels:
    """A file that takes all kernel constants of another one."""

    file: str
    of: str
    assumption: str


_AS_BF16 = {Dtype.FP16: Dtype.BF16, Dtype.TF32: Dtype.BF16, Dtype.FP32: Dtype.BF16}

SHIPPED = (
    ShippedKernels(
        file="a100_sxm",
        profile="dgx-a100-80gb",
        gemm={
            Dtype.BF16: GemmSource(
                tables=("a100_sxm_gemm_vllm_0.14.0", "a100_sxm_gemm_sglang_0.5.10"),
                timed="bursts in a CUDA graph, vLLM 0.14.0 and SGLang 0.5.10",
                tiles=_WIDE,
                splits=_ANY_SPLIT,
            )
        },
        attention="a100_sxm_context_attention_vllm_0.14.0",
        sustained="a100",
        only_layouts="it was timed on the PCIe card (SimuMax configs/system/a100_pcie.json), whose "
        "power limit is 300 W against 400 W",
        memory_bound="A100",
        same=_AS_BF16,
    ),
    ShippedKernels(
        file="h100_sxm",
        profile="dgx-h100",
        gemm={
            Dtype.BF16: GemmSource(
                tables=("h100_sxm_gemm_vllm_0.24.0",),
                timed="bursts in a CUDA graph, vLLM 0.24.0",
                tiles=_TALL,
                splits=_EVEN_SPLIT,
            ),
            Dtype.FP8: GemmSource(
                tables=("h100_sxm_gemm_vllm_0.24.0",),
                timed="bursts in a CUDA graph, vLLM 0.24.0, with the cast of the activations; "
                "256 <= m, n, k and n, k <= 32768, since this kernel, and not the block-scaled one "
                "beside it, loses a third of its speed above",
                tiles=_FLAT,
                splits=_EVEN_SPLIT,
                cast=True,
                least=256,
                most=32768,
            ),
        },
        attention="h100_sxm_context_attention_vllm_0.24.0",
        same=_AS_BF16,
    ),
    ShippedKernels(
        file="b200_sxm",
        profile="dgx-b200",
        gemm={
            Dtype.BF16: GemmSource(
                tables=("b200_sxm_gemm_vllm_0.24.0",),
                timed="bursts in a CUDA graph, vLLM 0.24.0",
                tiles=_TALL,
                splits=_EVEN_SPLIT,
            ),
            Dtype.FP8: GemmSource(
                tables=("b200_sxm_gemm_vllm_0.24.0",),
                timed="bursts in a CUDA graph, vLLM 0.24.0, with the cast of the activations; "
                "256 <= m, n, k and n, k <= 32768, since this kernel, and not the block-scaled one "
                "beside it, loses a third of its speed above",
                tiles=_FLAT,
                splits=_EVEN_SPLIT,
                cast=True,
                least=256,
                most=32768,
            ),
        },
        attention="b200_sxm_context_attention_vllm_0.24.0",
        sustained="b200",
        same={**_AS_BF16, Dtype.FP4: Dtype.FP8},
    ),
)

COPIED = (
    CopiedKernels(
        file="gb200",
        of="b200_sxm",
        assumption="the same chip at a higher power limit; shares of its own, higher peaks",
    ),
    CopiedKernels(file="rtx_pro_6000", of=NOMINAL, assumption="no kernel of this GPU was measured"),
)
