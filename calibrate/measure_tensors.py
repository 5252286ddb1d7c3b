"""Tensors to measure with, and how an outcome says how its runs followed each other.

Values are random, as boards need less power for zeros.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from calibrate.measure_device import Device, Repeated, Repeating
from calibrate.measuring import Outcome
from simulator.errors import Problem, UnsupportedError
from simulator.hardware.accelerator import Dtype

TORCH_DTYPES = {
    Dtype.FP32: torch.float32,
    Dtype.TF32: torch.float32,
    Dtype.BF16: torch.bfloat16,
    Dtype.FP16: torch.float16,
    Dtype.FP8: torch.float8_e4m3fn,
}
"""Formats of operands that PyTorch multiplies; float32 products run as TF32 where asked for."""


def random_tensor(device: Device, dtype: torch.dtype, *shape: int) -> Tensor:
    """Return a tensor of numbers between -1 and 1."""
    wide = dtype if dtype.itemsize > 1 else torch.bfloat16
    filled = torch.empty(shape, dtype=wide, device=device.torch_device).uniform_(-1, 1)
    return filled.to(dtype)


def torch_dtype(dtype: Dtype) -> torch.dtype:
    """Return the format of a tensor's elements. Raises `UnsupportedError` where there is none."""
    found = TORCH_DTYPES.get(dtype)
    if found is None:
        known = ", ".join(sorted(TORCH_DTYPES))
        rule = f"PyTorch multiplies no {dtype} here"
        raise UnsupportedError(Problem(where="point", key="dtype", rule=rule, fix=f"use {known}"))
    return found


def said_how(outcome: Outcome, run: Repeated) -> Outcome:
    """Return the outcome with whether runs came from a graph (1) or were launched by the CPU."""
    graph = float(run.how is Repeating.GRAPH)
    return replace(outcome, values={**outcome.values, "graph": graph})
