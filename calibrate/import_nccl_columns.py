"""The header of the tables that nccl-tests and rccl-tests print, of every version."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from simulator.units import MS, US


class Column(StrEnum):
    """What a column holds."""

    SIZE = "size"
    COUNT = "count"
    TYPE = "type"
    REDOP = "redop"
    ROOT = "root"
    TIME = "time"
    ALGBW = "algbw"
    BUSBW = "busbw"
    WRONG = "wrong"
    """A count of elements."""
    ERROR = "error"
    """The largest difference; an asterisk says that it is too large."""
    OTHER = "other"


_NAMES = {
    Column.SIZE: ("size", "bytes", "nbytes", "msg_size", "message_size"),
    Column.COUNT: ("count", "n", "elements", "nelem"),
    Column.TYPE: ("type", "dtype", "datatype"),
    Column.REDOP: ("redop", "op", "reduction"),
    Column.ROOT: ("root",),
    Column.TIME: ("time", "cputime", "time_us", "out_of_place_us", "in_place_us", "latency"),
    Column.ALGBW: ("algbw", "alg_bw"),
    Column.BUSBW: ("busbw", "bus_bw"),
    Column.WRONG: ("#wrong", "wrong"),
    Column.ERROR: ("error", "errors", "res", "delta"),
}
"""Of all versions: 1.x has bytes, N, op and res; 2.0 error; 2.12 #wrong; 2.13 redop and root."""
_BY_NAME = {name: column for column, names in _NAMES.items() for name in names}
_EXTRA = re.compile(r"i_(?:min|max|p\d+|cv%?|avg)|(?:min|max|avg|stddev|p\d+)(?:_us)?", re.I)
_STAMP = "timestamp"
_STAMP_WORDS = 2
"""Date and time."""
_UNIT = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_TIME_UNITS = {"us": US, "usec": US, "µs": US, "ms": MS, "s": 1.0, "sec": 1.0, "ns": 1e-9}


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A header: columns that are common, then one block for each way to place the buffers."""

    left: tuple[Column, ...]
    blocks: tuple[tuple[Column, ...], ...]
    places: tuple[bool | None, ...]
    """Whether each block is in place; None where the header does not say."""
    unit: float | None = None
    """Seconds of one unit of time; None where the header does not say."""
    cpu_time: bool = False
    trailing: int = 0
    """Words after the last block that are no measurement."""

    @property
    def width(self) -> int:
        """Words of all blocks."""
        return sum(map(len, self.blocks))


_RESULT = (Column.TIME, Column.ALGBW, Column.BUSBW, Column.WRONG)
PLAIN = Columns(
    left=(Column.SIZE, Column.COUNT, Column.TYPE, Column.REDOP, Column.ROOT),
    blocks=(_RESULT, _RESULT),
    places=(False, True),
    unit=US,
)
"""Of nccl-tests since 2.13, for rows whose header was cut off."""


def columns_of(text: str) -> Columns | None:
    """Return what a line heads; None where it heads no table of benchmark results."""
    words = text.replace("|", " ").strip().removeprefix("#").split()
    names = [word.lower() for word in words]
    plain = [_UNIT.sub("", name) for name in names]
    plain = [name for name in plain if name]
    columns = [_column(name) for name in plain]
    times = [place for place, column in enumerate(columns) if column is Column.TIME]
    sized = Column.SIZE in columns and columns.index(Column.SIZE) == 0
    if not times or not sized or not all(map(_expected, columns, plain)):
        return None
    ends = [*times[1:], len(columns)]
    blocks = [tuple(columns[begin:end]) for begin, end in zip(times, ends, strict=True)]
    stamped = plain[-1] == _STAMP
    if stamped:
        blocks[-1] = blocks[-1][:-1]
    return Columns(
        left=tuple(column for column in columns[: times[0]] if column is not None),
        blocks=tuple(tuple(column for column in block if column is not None) for block in blocks),
        places=_places([plain[place] for place in times]),
        unit=_time_unit(names) or (US if any(n.endswith("_us") for n in plain) else None),
        cpu_time="cputime" in plain,
        trailing=_STAMP_WORDS if stamped else 0,
    )


def unit_of(text: str) -> float | None:
    """Return the seconds of a unit of time in a line that holds only units: "(B) (us) (GB/s)"."""
    words = text.replace("|", " ").strip().removeprefix("#").split()
    if not words or not all(_UNIT.fullmatch(word) or word.startswith("%") for word in words):
        return None
    return _time_unit([word.lower() for word in words])


def _column(name: str) -> Column | None:
    if name in _BY_NAME:
        return _BY_NAME[name]
    return Column.OTHER if _EXTRA.fullmatch(name) or name == _STAMP else None


def _expected(column: Column | None, name: str) -> bool:
    return column is not None or name == _STAMP


def _places(times: Sequence[str]) -> tuple[bool | None, ...]:
    if all(name.endswith("place_us") for name in times):
        return tuple(name.startswith("in") for name in times)
    return (False, True) if len(times) == len((False, True)) else (None,) * len(times)


def _time_unit(names: Sequence[str]) -> float | None:
    units = (match[1].strip() for name in names for match in _UNIT.finditer(name))
    return next((_TIME_UNITS[unit] for unit in units if unit in _TIME_UNITS), None)
