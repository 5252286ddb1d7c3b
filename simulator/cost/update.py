"""The optimizer's update of one rank, and what else a step does once for each parameter."""

from __future__ import annotations

from math import ceil

from simulator.cost.blocks import KernelCosts
from simulator.cost.memory_bound import memory_bound_seconds
from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.layout import ZERO_GRADIENTS, ZERO_STATES
from simulator.parallel.program import StepProgram
from simulator.parallel.states import Group, groups, sharded, state_bytes
from simulator.workload.operator import Gemm
from simulator.workload.optimizers import NEWTON_SCHULZ_STEPS, STATE_RULES

_ERROR_PASSES = 6
"""Error feedback: the error is added to the gradient (two reads, a write), and what the factors
leave out becomes the next error (two reads, a write)."""


def update_seconds(program: StepProgram, stage: int, kernels: KernelCosts) -> float:
    """Return the seconds of one rank's update of a stage.

    The local shard of master, states, gradient and parameter is read and written; the whole local
    gradient is passed over for its norm and for zeroing. What is updated on the host is left out
    of the former.
    """
    both = groups(program, stage)
    updated = (1.0 - program.layout.optimizer_offload) * updated_bytes(program, stage)
    passed = sum(_passed_bytes(program, group) for group in both)
    seconds = _moving(updated + passed, MemoryClass.OPTIMIZER, kernels)
    seconds += _moving(
        sum(_cast_bytes(program, group) for group in both), MemoryClass.COPY, kernels
    )
    if STATE_RULES[program.job.optimizer].orthogonalises:
        seconds += sum(_orthogonalisation(program, group, kernels) for group in both)
    if program.job.powersgd_rank is not None:
        seconds += _compression(program, both[0], program.job.powersgd_rank, kernels)
    return seconds


def update_kernel_seconds(program: StepProgram, stage: int, kernels: KernelCosts) -> float:
    """Return the seconds of the update itself on the accelerator, without what goes with it."""
    updated = (1.0 - program.layout.optimizer_offload) * updated_bytes(program, stage)
    return _moving(updated, MemoryClass.OPTIMIZER, kernels)


def updated_bytes(program: StepProgram, stage: int) -> float:
    """Return what the update of one rank's shard of a stage reads and writes, wherever it runs."""
    return sum(_updated_bytes(program, group) for group in groups(program, stage))


def _updated_bytes(program: StepProgram, group: Group) -> float:
    """Return what the update itself reads and writes.

    Master copies (parameters where there are none) and states are read and written, gradients are
    read as often as the optimizer needs, parameters are written: in 8 bits where they are gathered
    so.
    """
    numbers, rule = program.numbers, STATE_RULES[program.job.optimizer]
    master = 2 * numbers.master if numbers.master else numbers.parameter
    each = master + rule.gradient_reads * numbers.gradient + numbers.parameter
    moved = group.trained * each + 2 * state_bytes(program, group)
    if program.job.fp8_parameters and program.job.lora is None:
        moved -= min(group.narrow, group.trained) * (numbers.parameter - numbers.narrow_gather)
    return moved * sharded(program, group, ZERO_STATES)


def _passed_bytes(program: StepProgram, group: Group) -> float:
    """Return the passes over the whole local gradient."""
    gradient = program.numbers.gradient * program.stack.numerics.gradient_passes
    return gradient * group.trained * sharded(program, group, ZERO_GRADIENTS)


def _cast_bytes(program: StepProgram, group: Group) -> float:
    """Return the casts of weights that are kept narrow, and of gradients narrower on the wire.

    Gradients are cast before each reduction (ZeRO-2 and 3 reduce once a micro-batch), and added up
    in their own format behind it, of which a shard is written where they are scattered. Frozen
    weights that are kept in 8 bits alone never change.
    """
    numbers, layout = program.numbers, program.layout
    unchanged = program.job.lora is not None and program.job.fp8_parameters
    weights = 0.0 if unchanged else numbers.weight_cast * group.narrow
    if not numbers.quantise or group.shards == 1:
        return weights
    written = numbers.gradient * sharded(program, group, ZERO_STATES)
    each = numbers.quantise + numbers.dequantise + written
    times = program.micro_batches if layout.zero_stage >= ZERO_GRADIENTS else 1
    return weights + each * group.trained * times


def _orthogonalisation(program: StepProgram, group: Group, kernels: KernelCosts) -> float:
    """Return the Newton-Schulz steps of the busiest rank, in 16 bits.

    Each matrix is orthogonalised as tensor parallelism cut it, by one of the ranks that share the
    states (Megatron-Core optimizer/layer_wise_optimizer.py deals whole matrices): of c equal ones
    the busiest rank has ceil(c / ranks). Sums beside the products run in their epilogues.
    """
    ranks = group.shards if program.layout.zero_stage >= ZERO_STATES else 1
    return sum(
        NEWTON_SCHULZ_STEPS * ceil(count / ranks) * _newton_schulz_step(k, n, kernels)
        for (k, n), count in group.matrices
    )


def _newton_schulz_step(k: int, n: int, kernels: KernelCosts) -> float:
    """Return the seconds of one step over an (n, m) matrix X, n <= m.

    A = X X^T (2 n n m FLOP), B = b A + c A A (2 n n n) and X = a X + B X (2 n n m).
    """
    side, long = sorted((k, n))
    products = ((side, side, long), (side, side, side), (side, long, side))
    gemms = (Gemm(name="muon", m=m, n=n, k=k) for m, n, k in products)
    return sum(kernels.operator_seconds(gemm) for gemm in gemms)


def _compression(program: StepProgram, group: Group, rank: int, kernels: KernelCosts) -> float:
    """Return PowerSGD of a stage's gradients: P = M Q, its columns made orthogonal, M^T P, P Q^T.

    Gram-Schmidt takes column after column off those behind it: r r k numbers are read and written.
    The products run in 16 bits. Source: Vogels et al. 2019, algorithm 1.
    """
    element, seconds, moved = program.numbers.gradient, 0.0, 0.0
    for (k, n), count in group.matrices:
        r = min(rank, k, n)
        products = ((k, r, n), (n, r, k), (k, n, r))
        gemms = (Gemm(name="powersgd", m=a, n=b, k=c, count=count) for a, b, c in products)
        seconds += sum(kernels.operator_seconds(gemm) for gemm in gemms)
        moved += element * count * (_ERROR_PASSES * k * n + r * r * k)
    return seconds + _moving(moved, MemoryClass.POINTWISE, kernels)


def _moving(moved: float, kind: MemoryClass, kernels: KernelCosts) -> float:
    if not moved:
        return 0.0
    profile = kernels.profile
    seconds = memory_bound_seconds(
        moved,
        kind,
        gpu=profile.accelerator,
        constants=profile.constants.memory_bound,
    )
    return seconds * kernels.scale
