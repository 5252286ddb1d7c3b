"""Reading tables of measured kernel times into arrays; the columns are those of their README."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmLayout
from simulator.units import US
from simulator.workload.operator import AttentionShape

Array: TypeAlias = NDArray[np.float64]

_NAMES = {Dtype.BF16: ("bfloat16", "bf16"), Dtype.FP16: ("float16", "fp16"), Dtype.FP8: ("fp8",)}
"""How tables write a dtype. Block-scaled fp8 is left out: its times are those of its launch."""
LAYOUTS = {
    "TN": GemmLayout.FORWARD,
    "NN": GemmLayout.INPUT_GRADIENT,
    "NT": GemmLayout.WEIGHT_GRADIENT,
}
"""How tables write a layout."""
_GEMM = ["m", "n", "k"]
_ATTENTION = ["batch_size", "seq_len", "num_heads", "num_key_value_heads", "head_dim"]
_WINDOWED_REPEATS = (4, 6)
"""Rows a shape has where half of them were timed with a sliding window that no column names."""
TRAINING_SIZE = 256
"""Smallest of m, n and k from which a GEMM counts as training-size."""
TRAINING_TOKENS = 1024
"""Sequence length from which attention counts as training-size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmTable:
    """Measured GEMMs of one dtype."""

    shapes: Array
    """(3, count): m, n and k."""
    seconds: Array

    @property
    def training(self) -> NDArray[np.bool_]:
        """Which points are as large as those of a training step."""
        return np.asarray(self.shapes.min(axis=0) >= TRAINING_SIZE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTable:
    """GEMMs of one layout, timed on a training node under sustained load."""

    gemms: GemmTable
    layout: GemmLayout
    accumulate: bool
    """Added to a float32 output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionTable:
    """Measured causal attention forward passes that also wrote an inference cache."""

    shapes: tuple[AttentionShape, ...]
    seconds: Array

    @property
    def training(self) -> NDArray[np.bool_]:
        """Which points are as long as those of a training step."""
        return np.array([shape.seq_q >= TRAINING_TOKENS for shape in self.shapes])


def read_gemms(
    path: Path, dtype: Dtype, *, least: int = 0, most: float = float("inf")
) -> GemmTable:
    """Return the GEMMs of `dtype` in a CSV file: the median of each shape.

    Only those with m, n and k of at least `least`, and n and k of at most `most`.
    """
    table = pd.read_csv(path)
    table = table[table["dtype"].isin(_NAMES[dtype])]
    table = table[(table[_GEMM].min(axis=1) >= least) & (table[["n", "k"]].max(axis=1) <= most)]
    median = table.groupby(_GEMM, as_index=False)["time_us"].median()
    shapes = median[_GEMM].to_numpy(dtype=np.float64).T
    return GemmTable(shapes=shapes, seconds=median["time_us"].to_numpy(dtype=np.float64) * US)


def read_layouts(path: Path, gpu: str) -> tuple[LayoutTable, ...]:
    """Return the sustained GEMMs of `gpu` in a CSV file, by layout and by how they accumulate."""
    table = pd.read_csv(path)
    table = table[table["gpu"] == gpu]
    groups = []
    for letters, layout in LAYOUTS.items():
        rows = table[table["layout"] == letters]
        adds = rows["acc"].astype(bool) & (rows["out"] == "fp32")
        for accumulate in (False, True):
            chosen = rows[adds == accumulate]
            if len(chosen):
                shapes = chosen[_GEMM].to_numpy(dtype=np.float64).T
                gemms = GemmTable(shapes=shapes, seconds=chosen["t"].to_numpy(np.float64) * US)
                groups.append(LayoutTable(gemms=gemms, layout=layout, accumulate=accumulate))
    return tuple(groups)


def read_attention(path: Path, head_dims: tuple[int, ...]) -> AttentionTable:
    """Return the full attention of `head_dims` in a CSV file: the geometric mean of each shape.

    Some tables time a shape with and without a sliding window and do not say which is which: of
    4 or 6 rows the slower half is full attention. Single rows of such tables could be either and
    are left out.
    """
    table = pd.read_csv(path)
    table = table[table["head_dim"].isin(head_dims)]
    repeats: dict[tuple[int, ...], list[float]] = {}
    for *row, time_us in table[[*_ATTENTION, "time_us"]].itertuples(index=False):
        repeats.setdefault(tuple(row), []).append(time_us)
    windowed = any(len(times) in _WINDOWED_REPEATS for times in repeats.values())
    shapes, seconds = [], []
    for sizes, times in repeats.items():
        if windowed and len(times) == 1:
            continue
        half = len(times) // 2 if len(times) in _WINDOWED_REPEATS else 0
        full = sorted(times)[half:]
        shapes.append(_shape(*sizes))
        seconds.append(float(np.exp(np.log(full).mean())) * US)
    return AttentionTable(shapes=tuple(shapes), seconds=np.array(seconds))


def _shape(batch: int, seq: int, heads: int, kv_heads: int, head_dim: int) -> AttentionShape:
    return AttentionShape(
        batch=batch, seq_q=seq, seq_k=seq, heads=heads, kv_heads=kv_heads, head_dim=head_dim
    )
