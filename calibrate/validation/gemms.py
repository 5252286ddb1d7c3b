"""GEMM rows: one matrix product of one shape, timed alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrate.kernel_tables import LAYOUTS
from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.machines import Machines
from calibrate.validation.records import Quantity, RowResult, Status
from calibrate.validation.rows import GEMM_TIME
from simulator.cost.gemm import gemm_seconds, gemm_seconds_of
from simulator.errors import InputError
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmLayout
from simulator.hardware.profile import Profile
from simulator.units import US

_DTYPES = {
    "bfloat16": Dtype.BF16,
    "bf16": Dtype.BF16,
    "float16": Dtype.FP16,
    "half": Dtype.FP16,
    "fp16": Dtype.FP16,
    "fp8": Dtype.FP8,
    "tf32": Dtype.TF32,
    "fp32": Dtype.FP32,
    "float32": Dtype.FP32,
}
_LARGEST = 2**24
"""Of a dimension; products of three stay finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """What rows that are predicted together have in common."""

    profile: str
    dtype: Dtype
    layout: GemmLayout | None
    """None: the table knows no layouts; its rows are bursts of forward products."""
    accumulate: bool
    batch: int

    @property
    def burst(self) -> bool:
        """Tables with layouts are timed in training runs, others in bursts with the cast."""
        return self.layout is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gemm:
    result: RowResult
    profile: Profile
    kind: _Kind
    shape: tuple[int, int, int]


class GemmForecasts:
    """Forecasts the GEMM rows of one file, those of one kind at once."""

    def __init__(self, profile: str | None, stem: str) -> None:
        self._machines = Machines(profile)
        self._stem = stem
        self.stacks: set[str] = set()

    @property
    def profiles(self) -> Sequence[Profile]:
        """The machines that were used."""
        return self._machines.used

    def predict(self, rows: Sequence[tuple[str, Row]]) -> list[RowResult]:
        """Return the forecast of each row, or why there is none, in order."""
        read = [self._read(name, row) for name, row in rows]
        results = {i: row for i, row in enumerate(read) if isinstance(row, RowResult)}
        alike: dict[_Kind, list[tuple[int, _Gemm]]] = {}
        for index, row in enumerate(read):
            if isinstance(row, _Gemm):
                alike.setdefault(row.kind, []).append((index, row))
        for members in alike.values():
            seconds = _seconds([gemm for _, gemm in members])
            for (index, gemm), each in zip(members, seconds, strict=True):
                results[index] = replace(gemm.result, predicted=each)
        return [results[index] for index in range(len(read))]

    def _read(self, name: str, row: Row) -> _Gemm | RowResult:
        measured = None
        try:
            column = next((c for c in GEMM_TIME if row.known(c)), GEMM_TIME[0])
            measured = row.number(column) * US
            m, n, k = (row.integer(axis, largest=_LARGEST) for axis in ("m", "n", "k"))
            profile = self._machines.of_kernel(row, self._stem)
            kind = _kind(row, profile)
        except (SkippedRowError, InputError) as error:
            return RowResult(
                id=name,
                status=Status.SKIPPED,
                quantity=Quantity.GEMM_TIME,
                reason=str(error).partition("\n")[0],
                measured=measured,
            )
        labels = {"profile": profile.name, "dtype": kind.dtype.value}
        labels |= {"layout": kind.layout.value} if kind.layout else {}
        result = RowResult(
            id=name,
            status=Status.PREDICTED,
            quantity=Quantity.GEMM_TIME,
            measured=measured,
            assumed=tuple(row.assumed),
            labels=labels,
        )
        return _Gemm(result=result, profile=profile, kind=kind, shape=(m, n, k))


def _kind(row: Row, profile: Profile) -> _Kind:
    dtype = _dtype(row)
    if dtype not in profile.constants.gemm:
        raise SkippedRowError(f"dtype: {profile.name} has no constants for {dtype.value}")
    return _Kind(
        profile=profile.name,
        dtype=dtype,
        layout=_layout(row),
        accumulate=row.text("acc").lower() == "true" and row.text("out").lower() == "fp32",
        batch=row.integer("b", largest=_LARGEST) if row.known("b") else 1,
    )


def _seconds(gemms: Sequence[_Gemm]) -> list[float]:
    """Return the seconds of each of some rows of one kind."""
    kind, profile = gemms[0].kind, gemms[0].profile
    how: dict[str, Any] = {
        "dtype": kind.dtype,
        "gpu": profile.accelerator,
        "constants": profile.constants.gemm[kind.dtype],
        "accumulate": kind.accumulate,
        "layout": kind.layout or GemmLayout.FORWARD,
        "sustained": not kind.burst,
        "cast_input": kind.burst,
    }
    if kind.batch > 1:
        return [gemm_seconds(*gemm.shape, batch=kind.batch, **how) for gemm in gemms]
    shapes = np.array([gemm.shape for gemm in gemms], dtype=np.float64).T
    seconds: list[float] = gemm_seconds_of(shapes, **how).tolist()
    return seconds


def _dtype(row: Row) -> Dtype:
    word = row.text("dtype").lower()
    if not word:
        row.assume("dtype = bf16")
        return Dtype.BF16
    if word not in _DTYPES:
        raise row.bad("dtype", "one of " + ", ".join(_DTYPES))
    return _DTYPES[word]


def _layout(row: Row) -> GemmLayout | None:
    letters = row.text("layout").upper()
    if letters and letters not in LAYOUTS:
        raise row.bad("layout", "one of " + ", ".join(LAYOUTS))
    return LAYOUTS[letters] if letters else None
