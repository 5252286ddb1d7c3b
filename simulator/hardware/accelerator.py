"""One accelerator: what the vendor's data sheet says of it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from simulator.files import FileRecord
from simulator.units import Bandwidth, Bytes, ComputeRate, Hertz, Watts


class Dtype(StrEnum):
    """A number format; `bytes` is its width."""

    FP32 = "fp32"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    FP4 = "fp4"
    INT8 = "int8"

    @property
    def bytes(self) -> float:
        """Bytes of one element."""
        return _WIDTH[self]


_WIDTH = {
    Dtype.FP32: 4.0,
    Dtype.TF32: 4.0,
    Dtype.BF16: 2.0,
    Dtype.FP16: 2.0,
    Dtype.FP8: 1.0,
    Dtype.FP4: 0.5,
    Dtype.INT8: 1.0,
}


class Accelerator(FileRecord):
    """A GPU, TPU core or CPU socket, in nominal (data-sheet) numbers."""

    name: str
    """As the vendor writes it, such as "NVIDIA A100-SXM4-80GB"."""
    peak: dict[Dtype, ComputeRate] = Field(min_length=1)
    """Dense (not sparse) peak a dtype, FLOP/s."""
    memory: Bytes
    """Usable device memory, bytes (GiB in files)."""
    memory_bandwidth: Bandwidth
    """Nominal bandwidth of device memory, bytes/s."""
    l2: Bytes
    """Last-level cache, bytes; 0 where there is none."""
    compute_units: int = Field(ge=1)
    """Streaming multiprocessors, compute units or cores: what a GEMM's tiles are spread over."""
    clock: Hertz
    """Boost clock, Hz."""
    power: Watts
    """Board power limit, watts."""
    fp8_needs_transposes: bool = False
    """Whether 8-bit GEMMs take both operands along the summed dimension only, so that a backward
    pass needs transposed copies (Hopper and Ada: cuBLASLt, "FP8 kernels: TN format only")."""
    idle_power: Watts = 0.0
    """Idle board power, watts; 0 where it is not known."""
