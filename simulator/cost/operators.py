"""Seconds and bytes of single operators on one machine with one stack."""

from __future__ import annotations

from typing import NamedTuple, assert_never

from simulator.cost.attention import (
    attention_bytes,
    flash_backward_seconds,
    flash_forward_seconds,
)
from simulator.cost.gemm import gemm_bytes, gemm_seconds
from simulator.cost.memory_bound import memory_bound_seconds
from simulator.errors import Problem, UnsupportedError
from simulator.hardware.accelerator import Dtype
from simulator.hardware.constants import FittedConstants
from simulator.hardware.kernel_constants import GemmConstants, GemmLayout
from simulator.hardware.profile import Profile
from simulator.results import Category
from simulator.workload.calibrated import own_software
from simulator.workload.operator import FlashAttention, Gemm, MemoryBound, Operator
from simulator.workload.stack import Stack


class OperatorCost(NamedTuple):
    """What an operator costs on busy matrix units, and how it counts."""

    operator: Operator
    """Kept with it, so that its id stays its own."""
    seconds: float
    """Of all its runs."""
    category: Category
    launches: int
    """Kernels that the CPU launches."""


class OperatorCosts:
    """Prices operators on one machine with one stack."""

    def __init__(self, profile: Profile, stack: Stack, dtype: Dtype) -> None:
        self.profile = profile
        self.stack = stack
        self.dtype = dtype
        self.wide = wide_dtype(dtype)
        self.gemm_constants = {
            kind: gemm_constants(profile.constants, kind) for kind in (dtype, self.wide)
        }
        accelerator = profile.constants.accelerator
        software = own_software(stack, profile.constants.software)
        self.scale = stack.fit.scale.get(accelerator, 1.0)
        self.scale *= software.step_scale if software is not None else 1.0
        self.attention_scale = stack.fit.attention.get(accelerator, 1.0)
        narrow = {Dtype.FP8: stack.fit.fp8, Dtype.FP4: stack.fit.fp4}.get(dtype, {})
        self.narrow_scale = narrow.get(accelerator, 1.0)
        self.grouped_scale = stack.fit.grouped.get(accelerator, 1.0)
        self._gemms: dict[tuple[object, ...], float] = {}
        self._operators: dict[int, OperatorCost] = {}

    def operator(self, operator: Operator) -> OperatorCost:
        """Return the cost of an operator, once for one that several blocks share."""
        found = self._operators.get(id(operator))
        if found is None:
            found = self._operators[id(operator)] = OperatorCost(
                operator=operator,
                seconds=self.operator_seconds(operator),
                category=_category(operator),
                launches=_launches(operator),
            )
        return found

    def operator_seconds(self, operator: Operator) -> float:
        """Return the seconds of all `count` runs of an operator in a training run."""
        gpu, constants = self.profile.accelerator, self.profile.constants
        match operator:
            case Gemm():
                once = self._gemm(operator)
            case FlashAttention():
                price = flash_backward_seconds if operator.backward else flash_forward_seconds
                once = self.attention_scale * price(
                    operator.shape,
                    dtype=self.wide,
                    gpu=gpu,
                    constants=constants.attention,
                    sustained=True,
                )
            case MemoryBound():
                kernels = self.stack.kernels
                factor = kernels.memory_factor * (kernels.eager_factor if operator.eager else 1.0)
                once = factor * memory_bound_seconds(
                    operator.bytes, operator.kind, gpu=gpu, constants=constants.memory_bound
                )
            case _:
                assert_never(operator)
        return once * operator.count * self.scale

    def operator_bytes(self, operator: Operator) -> float:
        """Return the bytes to and from device memory of all `count` runs, each tensor once."""
        match operator:
            case Gemm():
                once = gemm_bytes(
                    operator.m,
                    operator.n,
                    operator.k,
                    dtype=self.gemm_dtype(operator),
                    batch=operator.batch,
                    accumulate=self._accumulates(operator),
                )
            case FlashAttention():
                once = attention_bytes(operator.shape, dtype=self.wide, backward=operator.backward)
            case MemoryBound():
                once = operator.bytes
            case _:
                assert_never(operator)
        return float(once * operator.count)

    def _gemm(self, gemm: Gemm) -> float:
        """Return the seconds of one run of a product; those of equal size are priced once."""
        sizes = (gemm.m, gemm.n, gemm.k, gemm.batch)
        key = (*sizes, gemm.layout, gemm.narrow, gemm.grouped)
        found = self._gemms.get(key)
        if found is None:
            alone = 1 if self._runs_together(gemm) else gemm.batch
            seconds = gemm_seconds(
                gemm.m,
                gemm.n,
                gemm.k,
                dtype=self.gemm_dtype(gemm),
                gpu=self.profile.accelerator,
                constants=self.gemm_constants[self.gemm_dtype(gemm)],
                batch=gemm.batch // alone,
                layout=gemm.layout,
                accumulate=self._accumulates(gemm),
                sustained=True,
                grouped=gemm.grouped,
            )
            found = self._gemms[key] = self._gemm_scale(gemm) * alone * seconds
        return found

    def gemm_dtype(self, gemm: Gemm) -> Dtype:
        """Return the dtype that a GEMM runs in: the job's, where that is narrow only if it is."""
        return self.dtype if gemm.narrow else self.wide

    def _runs_together(self, gemm: Gemm) -> bool:
        """Whether the tiles of all products fill the GPU together, not each product's alone."""
        return not gemm.grouped or self.stack.kernels.grouped_waves

    def _gemm_scale(self, gemm: Gemm) -> float:
        """Return the stack's time of a GEMM over that of the constants' kernels."""
        grouped = self.grouped_scale if gemm.grouped else 1.0
        return grouped * (self.narrow_scale if gemm.narrow else 1.0)

    def _accumulates(self, gemm: Gemm) -> bool:
        """Whether the GEMM adds to the fp32 gradient itself."""
        fused = not self.stack.kernels.accumulate_bytes
        return fused and gemm.layout is GemmLayout.WEIGHT_GRADIENT


def gemm_constants(constants: FittedConstants, dtype: Dtype) -> GemmConstants:
    """Return the GEMM constants of a dtype.

    Raises:
        UnsupportedError: the accelerator has none for it; names those it has.
    """
    found = constants.gemm.get(dtype)
    if found is None:
        raise UnsupportedError(
            Problem(
                where=constants.accelerator,
                key="job.precision",
                found=dtype.value,
                rule="this accelerator has no constants for this precision",
                fix="one of: " + ", ".join(sorted(constants.gemm)),
            )
        )
    return found


def _category(operator: Operator) -> Category:
    match operator:
        case Gemm():
            return Category.GEMM
        case FlashAttention():
            return Category.ATTENTION
        case MemoryBound():
            return Category.MEMORY_BOUND


def _launches(operator: Operator) -> int:
    """Return the kernels that the CPU launches.

    A grouped GEMM is one for each group, on several streams.
    Source: Transformer Engine 2.7 common/gemm/cublaslt_gemm.cu, nvte_multi_stream_cublas_gemm.
    """
    match operator:
        case MemoryBound():
            return operator.launches * operator.count
        case Gemm(grouped=True):
            return operator.batch * operator.count
        case _:
            return operator.count


def wide_dtype(dtype: Dtype) -> Dtype:
    """Return the dtype of attention, head and router: bf16 where linear layers run narrower."""
    return Dtype.BF16 if dtype.bytes < Dtype.BF16.bytes else dtype
