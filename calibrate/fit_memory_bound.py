"""Memory-bound constants from a table of fitted start and bandwidth efficiencies of operators."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from simulator.hardware.kernel_constants import MemoryBoundConstants, MemoryClass

_CLASSES = {
    MemoryClass.POINTWISE: ("add", "div", "mul", "pow", "relu", "gelu", "tanh"),
    MemoryClass.NORM: ("ln",),
    MemoryClass.SOFTMAX: ("softmax",),
}
"""Operators of the table that stand for a class; those ending in u take one operand."""
_DIGITS = 3


def fit_memory_bound(
    path: Path, gpu: str, prior: MemoryBoundConstants
) -> tuple[MemoryBoundConstants, int]:
    """Return `prior` with the median efficiency of each class on `gpu`, and the points behind it.

    The start of `prior` stays: the table's own starts hold the time of the launch on the CPU.
    """
    table = pd.read_csv(path)
    table = table[table["dev"].str.contains(gpu, regex=False)]
    efficiency, points = dict(prior.efficiency), 0
    for kind, names in _CLASSES.items():
        rows = table[table["op"].isin([*names, *(f"{name}u" for name in names)])]
        efficiency[kind] = round(min(1.0, float(rows["bw_eff"].median())), _DIGITS)
        points += int(rows["n"].sum())
    return prior.model_copy(update={"efficiency": efficiency}), points
