"""Bytes of a parameter, its gradient and its optimizer states: the stack's and the job's word.

What a job's `dtypes` name overrides the stack's numerics; recipes for 8 and 4 bits add narrow
copies of the weights of linear layers.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.shard import casts_in_each_pass
from simulator.workload.job import TrainingJob
from simulator.workload.optimizers import STATE_RULES
from simulator.workload.recipes import SCALINGS
from simulator.workload.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Bytes each."""

    parameter: float
    """Of a parameter of embedding, head, norms, router and adapters, and of every parameter where
    no layer runs narrow."""
    narrow_parameter: float
    """Of a weight of a narrow linear layer, with all copies that stay between passes."""
    gradient: float
    """Of an accumulated gradient."""
    reduce: float
    """Of a gradient on the wire."""
    gather: float
    """Of a parameter on the wire."""
    narrow_gather: float
    """Of a weight of a narrow linear layer on the wire."""
    master: float
    """Of the optimizer's own copy of a parameter; 0 where it updates the parameter itself."""
    state: float
    """Of one number of the optimizer's states."""
    weight_cast: float
    """Moved a step to make the narrow copies of a weight that stay."""
    quantise: float
    """Read and written for each gradient to make its narrower form for the wire."""
    dequantise: float
    """Read of each gradient that came over the wire in a narrower form."""

    def weights(self, parameters: float, narrow: float) -> float:
        """Return the bytes of `parameters`, of which `narrow` are of narrow linear layers."""
        return (parameters - narrow) * self.parameter + narrow * self.narrow_parameter

    def gathered(self, parameters: float, narrow: float) -> float:
        """Return the bytes that a gather of `parameters` puts on the wire."""
        return (parameters - narrow) * self.gather + narrow * self.narrow_gather


def numbers_of(
    job: TrainingJob, stack: Stack, layout: ParallelLayout, *, transposes: bool = False
) -> Numbers:
    """Return the bytes that a layout of a job on a stack has; `transposes` as in `Shard`.

    A reduction in less than 16 bits is one of compressed gradients.
    """
    numerics = with_dtypes(stack, job).numerics
    gradient, reduce = numerics.gradient_bytes, numerics.reduce_bytes
    copies = _Copies.of(job, layout, transposes=transposes)
    compressed = reduce < Dtype.BF16.bytes
    return Numbers(
        parameter=numerics.parameter_bytes,
        narrow_parameter=copies.held + (0.0 if copies.only else numerics.parameter_bytes),
        gradient=gradient,
        reduce=reduce,
        gather=numerics.gather_bytes,
        narrow_gather=copies.gathered or numerics.gather_bytes,
        master=numerics.master_bytes,
        state=numerics.state_bytes,
        weight_cast=copies.made,
        quantise=gradient + reduce if compressed else 0.0,
        dequantise=reduce if compressed else 0.0,
    )


def with_dtypes(stack: Stack, job: TrainingJob) -> Stack:
    """Return a stack with the number formats that a job asks for in the place of its own.

    Gradients whose format the job sets travel in it where nothing else is said, at most in the
    stack's width. 8-bit optimizers keep their own format of states. Doing it twice changes nothing.
    """
    numerics, dtypes = stack.numerics, job.dtypes
    gradient = _bytes(dtypes.gradient, numerics.gradient_bytes)
    reduce = numerics.reduce_bytes
    if dtypes.gradient is not None:
        reduce = min(reduce, gradient)
    own = STATE_RULES[job.optimizer].own_bytes
    asked = {
        "gradient_bytes": gradient,
        "reduce_bytes": _bytes(dtypes.reduce, reduce),
        "master_bytes": _bytes(dtypes.master, numerics.master_bytes),
        "state_bytes": own if own is not None else _bytes(dtypes.state, numerics.state_bytes),
    }
    return stack.model_copy(update={"numerics": numerics.model_copy(update=asked)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copies:
    """Narrow copies of a weight."""

    held: float = 0.0
    only: bool = False
    """Whether there is no 16-bit copy beside them."""
    gathered: float = 0.0
    """On the wire; 0 where the stack's format is."""
    made: float = 0.0

    @classmethod
    def of(cls, job: TrainingJob, layout: ParallelLayout, *, transposes: bool) -> _Copies:
        """Return the copies that stay between passes, and what making them once a step moves.

        Forward and input gradient need a copy each: along rows and columns, or transposed. Weights
        that are 8 bits on the wire lack at most the second.
        """
        recipe = job.effective_recipe
        if recipe is None:
            return cls()
        scaling, wide = SCALINGS[recipe], Dtype.BF16.bytes
        second = scaling.columns or transposes
        held = scaling.weight * (1 + second)
        if job.fp8_parameters and scaling.gathers_parameters:
            made = 2 * scaling.weight * second
            return cls(held=held, only=True, gathered=scaling.weight, made=made)
        if casts_in_each_pass(layout, job):
            return cls()
        made = wide * (1 + scaling.searches) + held
        return cls(held=held, only=job.fp8_parameters, made=made)


def _bytes(dtype: Dtype | None, default: float) -> float:
    return default if dtype is None else dtype.bytes
