"""Attention rows: one causal flash attention forward pass, timed alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.machines import Machines
from calibrate.validation.records import Quantity, RowResult, Status
from simulator.cost.attention import flash_forward_seconds
from simulator.errors import InputError
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import Profile
from simulator.units import US
from simulator.workload.operator import AttentionShape

_SHAPE = ("batch_size", "seq_len", "num_heads", "num_key_value_heads", "head_dim")
_WINDOWED_REPEATS = (4, 6)
"""Rows a shape has where the faster half was timed with a sliding window that no column names."""
_LARGEST = 2**24
_LARGEST_HEAD = 4096


class AttentionForecasts:
    """Forecasts the attention rows of one file."""

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
        windowed = maybe_windowed([row for _, row in rows])
        return [
            self._predict(name, row, windowed.get(index, ""))
            for index, (name, row) in enumerate(rows)
        ]

    def _predict(self, name: str, row: Row, windowed: str) -> RowResult:
        measured = None
        try:
            measured = row.number("time_us") * US
            if windowed:
                raise SkippedRowError(windowed)
            shape = _shape(row)
            profile = self._machines.of_kernel(row, self._stem)
            row.assume("bf16")
            row.assume("K and V are written to an inference cache")
            predicted = flash_forward_seconds(
                shape,
                dtype=Dtype.BF16,
                gpu=profile.accelerator,
                constants=profile.constants.attention,
                write_cache=True,
            )
        except (SkippedRowError, InputError) as error:
            return RowResult(
                id=name,
                status=Status.SKIPPED,
                quantity=Quantity.ATTENTION_TIME,
                reason=str(error).partition("\n")[0],
                measured=measured,
            )
        return RowResult(
            id=name,
            status=Status.PREDICTED,
            quantity=Quantity.ATTENTION_TIME,
            measured=measured,
            predicted=predicted,
            assumed=tuple(row.assumed),
            labels={"profile": profile.name, "head_dim": str(shape.head_dim)},
        )


def _shape(row: Row) -> AttentionShape:
    heads = row.integer("num_heads", largest=_LARGEST)
    kv_heads = row.integer("num_key_value_heads", heads)
    if heads % kv_heads:
        raise SkippedRowError(f"num_key_value_heads: {kv_heads} do not divide {heads} heads")
    seq_len = row.integer("seq_len", largest=_LARGEST)
    return AttentionShape(
        batch=row.integer("batch_size", largest=_LARGEST),
        seq_q=seq_len,
        seq_k=seq_len,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=row.integer("head_dim", largest=_LARGEST_HEAD),
    )


def maybe_windowed(rows: Sequence[Row]) -> Mapping[int, str]:
    """Return the rows, by their place, that may have been timed with a sliding window.

    Some tables time each shape with and without a window and do not say which is which: of 4 or
    6 rows the slower half is full attention; single rows of such tables could be either.
    """
    alike: dict[tuple[str, ...], list[tuple[float, int]]] = {}
    for index, row in enumerate(rows):
        try:
            timed = (row.number("time_us"), index)
        except SkippedRowError:
            continue
        alike.setdefault(tuple(row.text(column) for column in _SHAPE), []).append(timed)
    if not any(len(same) in _WINDOWED_REPEATS for same in alike.values()):
        return {}
    found: dict[int, str] = {}
    for same in alike.values():
        if len(same) == 1:
            found[same[0][1]] = "a single row of a table that also timed sliding windows"
        elif len(same) in _WINDOWED_REPEATS:
            faster = sorted(same)[: len(same) // 2]
            reason = f"the faster half of {len(same)} rows of one shape: a sliding window"
            found |= {index: reason for _, index in faster}
    return found
