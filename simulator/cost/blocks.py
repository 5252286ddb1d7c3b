"""Seconds of a block of operators and collectives on one rank, by category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from simulator.cost.attention import (
    attention_bytes,
    flash_backward_seconds,
    flash_forward_seconds,
)
from simulator.cost.collectives.select import CollectiveCosts
from simulator.cost.gemm import gemm_bytes, gemm_seconds
from simulator.cost.interference import exposed_seconds, interferes, operator_slowdown
from simulator.cost.memory_bound import memory_bound_seconds
from simulator.cost.network.network import Network
from simulator.cost.plan import CommPlan
from simulator.errors import Problem, UnsupportedError
from simulator.hardware.accelerator import Dtype
from simulator.hardware.constants import FittedConstants
from simulator.hardware.kernel_constants import GemmConstants, GemmLayout
from simulator.hardware.profile import Profile
from simulator.parallel.layout import Axis
from simulator.parallel.work import Block, CommWork
from simulator.results import Category
from simulator.workload.calibrated import own_software
from simulator.workload.operator import FlashAttention, Gemm, MemoryBound, Operator
from simulator.workload.stack import Stack

_COMM_CATEGORY = {
    Axis.TENSOR: Category.TENSOR_COMM,
    Axis.CONTEXT: Category.CONTEXT_COMM,
    Axis.EXPERT: Category.EXPERT_COMM,
    Axis.EXPERT_TENSOR: Category.EXPERT_COMM,
    Axis.HOST: Category.HOST_COMM,
}


class PieceCost(NamedTuple):
    """One operator or collective of a block: when it starts in the block and how long it takes."""

    name: str
    category: Category
    offset: float
    """Seconds from the start of the block."""
    seconds: float
    """Of the piece itself, hidden or not."""
    exposed: float
    """Seconds by which it makes the block longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCost:
    """How long a block takes; `by_category` adds up to `seconds`."""

    seconds: float
    by_category: Mapping[Category, float]
    pieces: tuple[PieceCost, ...] = field(repr=False)


class KernelCosts:
    """Prices operators and blocks on one machine with one stack."""

    def __init__(
        self,
        profile: Profile,
        stack: Stack,
        dtype: Dtype,
        collectives: CollectiveCosts,
        *,
        network: Network | None = None,
    ) -> None:
        self.profile = profile
        self.stack = stack
        self.dtype = dtype
        self.wide = wide_dtype(dtype)
        self.collectives, self.network = collectives, network
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
        self._operators: dict[int, tuple[Operator, float]] = {}

    def _seconds(self, operator: Operator) -> float:
        """Return `operator_seconds`, once for an operator that several blocks share."""
        found = self._operators.get(id(operator))
        if found is None:
            # The operator is kept with it, so that its id stays its own.
            found = self._operators[id(operator)] = operator, self.operator_seconds(operator)
        return found[1]

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

    def comm_seconds(self, comm: CommWork) -> float:
        """Return the seconds of all `count` runs of a collective, alone on its links."""
        return self.comm_plan(comm).seconds * comm.count

    def comm_plan(self, comm: CommWork) -> CommPlan:
        """Return the plan of one run of a collective, alone on its links."""
        plan = self.collectives.plan(
            comm.collective,
            comm.payload,
            comm.group,
            algorithm=comm.algorithm,
            network_share=comm.network_share,
        )
        return plan if self.network is None else self.network.in_passes(plan)

    def block(self, block: Block) -> BlockCost:
        """Return the cost of a block.

        Its pieces run in turn, less what collectives hide behind; it takes at least the CPU time to
        launch them all.
        """
        operators = self._settled(
            [(p, self._seconds(p)) for p in block.pieces if not isinstance(p, CommWork)]
        )
        slowdowns = self._slowdowns(block)
        totals: dict[Category, float] = {}
        pieces, clock, launch = [], 0.0, self.stack.kernels.cpu_experts * block.mixtures
        for piece in block.pieces:
            if isinstance(piece, CommWork):
                seconds = self.comm_seconds(piece)
                exposed = self._exposed(piece, seconds, operators, slowdowns)
                category = _COMM_CATEGORY[piece.axis]
                launch += self.stack.kernels.cpu_collective * piece.count
            else:
                seconds = exposed = operators[piece.name]
                category = _category(piece)
                launch += self.stack.kernels.cpu_launch * _launches(piece)
            offset = clock + exposed - seconds if exposed < seconds else clock
            pieces.append(
                PieceCost(
                    name=piece.name,
                    category=category,
                    offset=max(0.0, offset),
                    seconds=seconds,
                    exposed=exposed,
                )
            )
            totals[category] = totals.get(category, 0.0) + exposed
            clock += exposed
        totals[Category.LAUNCH] = max(0.0, launch - clock)
        return BlockCost(
            seconds=clock + totals[Category.LAUNCH], by_category=totals, pieces=tuple(pieces)
        )

    def _slowdowns(self, block: Block) -> dict[str, float]:
        """Return k of each operator that a collective hides behind, by name."""
        overlap = self.stack.overlap
        if not interferes(overlap):
            return {}
        return {
            p.name: operator_slowdown(p, overlap)
            for p in block.pieces
            if not isinstance(p, CommWork)
        }

    def _exposed(
        self,
        comm: CommWork,
        seconds: float,
        operators: Mapping[str, float],
        slowdowns: Mapping[str, float],
    ) -> float:
        """Return the seconds by which a collective of `seconds` makes its block longer."""
        if not comm.hidden_by:
            return seconds
        window = sum(operators.get(name, 0.0) for name in comm.hidden_by)
        slowed = sum(operators.get(name, 0.0) * slowdowns.get(name, 1.0) for name in comm.hidden_by)
        return exposed_seconds(
            seconds,
            window,
            comm.hidden_fraction,
            slowed / window if window else 1.0,
            self.stack.overlap.comm_slowdown,
        )

    def _settled(self, seconds: Sequence[tuple[Operator, float]]) -> dict[str, float]:
        """Return the seconds by name, with clocks settled to what the block does.

        `operator_seconds` is for matrix units that are always busy. Where they are busy for a
        share x of the time, clocks fall by x of the `throttle` of a GEMM's own constants.
        """
        matrix = sum(t for piece, t in seconds if not isinstance(piece, MemoryBound))
        whole = sum(t for _, t in seconds)
        share = matrix / whole if whole else 0.0
        settled = {
            kind: (1 + constants.throttle * share) / (1 + constants.throttle)
            for kind, constants in self.gemm_constants.items()
        }
        return {
            piece.name: t * settled[self.gemm_dtype(piece)] if isinstance(piece, Gemm) else t
            for piece, t in seconds
        }

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
