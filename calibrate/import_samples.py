"""What benchmark logs of all formats are read into: runs of samples, each with its precision."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from simulator.parallel.groups import Collective

_GROUPED = re.compile(r"[+-]?\d{1,15}(?:[,_'\u2009\u202f]\d{3})+(?:\.\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,15},\d{1,2}")
"""Three digits after a comma are thousands."""
_SEPARATORS = re.compile(r"[,_'\u2009\u202f]")
_SUFFIXED = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])i?B?", re.I)
_POWERS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
"""As nccl-tests reads sizes on its command line (`parsesize`)."""
_LONGEST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A number as it was printed; it stands for all numbers within `slack` of it."""

    value: float
    slack: float
    """One unit of the last digit: printf rounds, some tools cut off."""

    def times(self, factor: float) -> Printed:
        """Return it in another unit."""
        return Printed(value=self.value * factor, slack=self.slack * factor)

    @property
    def low(self) -> float:
        """The smallest number it can stand for."""
        return self.value - self.slack

    @property
    def high(self) -> float:
        """The largest number it can stand for."""
        return self.value + self.slack


def printed(text: str) -> Printed | None:
    """Return a finite printed number; None where the text is none ("N/A", "nan", a word).

    >>> printed("41.31"), printed("1,048,576").value, printed("2e+04").slack, printed("N/A")
    (Printed(value=41.31, slack=0.01), 1048576.0, 10000.0, None)
    """
    if len(text) > _LONGEST:
        return None
    plain = _SEPARATORS.sub("", text) if _GROUPED.fullmatch(text) else text
    plain = plain.replace(",", ".") if _DECIMAL_COMMA.fullmatch(plain) else plain
    if "_" in plain:
        return None
    try:
        number = Decimal(plain)
        value, exponent = float(number), number.as_tuple().exponent
    except (InvalidOperation, ValueError, OverflowError):
        return None
    if not math.isfinite(value) or not isinstance(exponent, int):
        return None
    slack = float(Decimal(1).scaleb(exponent))
    return Printed(value=value, slack=slack) if math.isfinite(slack) else None


def printed_size(text: str) -> float | None:
    """Return bytes; suffixes are powers of 1024, as in nccl-tests.

    >>> printed_size("32_768"), printed_size("128M"), printed_size("-8")
    (32768.0, 134217728.0, None)
    """
    match = _SUFFIXED.fullmatch(text) if len(text) <= _LONGEST else None
    if match:
        return float(match[1]) * _POWERS[match[2].lower()]
    number = printed(text)
    return number.value if number is not None and number.value >= 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One timed size."""

    line: int
    """In the file, from 1."""
    bytes: float
    time: Printed
    """Seconds."""
    in_place: bool | None = None
    count: float | None = None
    dtype: str = ""
    redop: str = ""
    root: int | None = None
    algbw: Printed | None = None
    """Bytes/s."""
    busbw: Printed | None = None
    """Bytes/s."""
    wrong: float | None = None
    """Elements that were wrong; None where nothing was checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One rank as a log lists it."""

    rank: int
    group: int
    host: str
    index: str
    """Of the device on its host."""
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a log says of a run; None and empty are not said."""

    collective: Collective | None = None
    other: str = ""
    """The benchmark's name where it is no collective that is simulated."""
    devices: tuple[Device, ...] = ()
    threads: int | None = None
    gpus: int | None = None
    """Of one thread."""
    processes: int | None = None
    per_node: int | None = None
    """Processes on a node."""
    nodes: int | None = None
    ranks: int | None = None
    accelerator: str | None = None
    library: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    isolated: bool = False
    """Whether a barrier follows each call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One sweep over sizes."""

    facts: Facts
    samples: tuple[Sample, ...]
    average: Printed | None = None
    """Mean of all bus bandwidths as the log says it, bytes/s."""
    busbws: tuple[float, ...] = ()
    """Of all rows, those without bytes included, bytes/s."""
    cpu_time: bool = False
    """Whether times are those of the CPU's launches."""
    notes: tuple[tuple[int, str], ...] = field(default=())
    """Line and words."""
