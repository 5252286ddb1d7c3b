"""Unit constants, and the parsing of unit strings at the edge.

Inside the program every quantity is a plain float in seconds, bytes, FLOP, bytes/s, FLOP/s, watts.
Unit strings exist in files and in rendered output only. GB is 1e9 bytes, GiB is 2**30 bytes and
Gbps is 1e9 bits/s; link rates are per direction.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo, WithJsonSchema

US = 1e-6
MS = 1e-3
KIB = 2.0**10
MIB = 2.0**20
GIB = 2.0**30
GB = 1e9
TERA = 1e12
BITS_PER_BYTE = 8
SECONDS_PER_DAY = 86400.0
SECONDS_PER_HOUR = 3600.0
JOULES_PER_KWH = 3.6e6
JOULES_PER_MWH = 3.6e9


class Dimension(StrEnum):
    """What a unit string measures; the value is the unit used inside."""

    TIME = "s"
    SIZE = "B"
    BANDWIDTH = "B/s"
    COMPUTE = "FLOP/s"
    POWER = "W"
    FREQUENCY = "Hz"


EXAMPLE = {
    Dimension.TIME: "1.8 us",
    Dimension.SIZE: "80 GiB",
    Dimension.BANDWIDTH: "450 GB/s",
    Dimension.COMPUTE: "989 TFLOP/s",
    Dimension.POWER: "700 W",
    Dimension.FREQUENCY: "1.41 GHz",
}

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(?P<unit>[A-Za-z]{1,16}(?:/[A-Za-z]{1,8})?)"
)
_MAX_TEXT = 48
_COUNTED = (Dimension.SIZE, Dimension.BANDWIDTH, Dimension.COMPUTE, Dimension.FREQUENCY)
"""What is never written in units smaller than a bit, a FLOP/s or a hertz."""


_SI = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"": 1.0, "Ki": KIB, "Mi": MIB, "Gi": GIB, "Ti": 2.0**40}
_EVERYDAY: Mapping[Dimension, Mapping[str, float]] = {
    Dimension.TIME: {"s": 1.0, "ms": MS, "us": US, "ns": 1e-9, "min": 60.0, "h": SECONDS_PER_HOUR},
    Dimension.SIZE: {f"{prefix}B": n for prefix, n in (_SI | _BINARY).items()},
    Dimension.BANDWIDTH: {
        **{f"{prefix}B/s": n for prefix, n in (_SI | _BINARY).items()},
        **{f"{prefix}bps": n / BITS_PER_BYTE for prefix, n in _SI.items()},
    },
    Dimension.COMPUTE: {
        f"{prefix}{unit}": n for unit in ("FLOP/s", "FLOPS") for prefix, n in _SI.items()
    },
    Dimension.POWER: {f"{prefix}W": n for prefix, n in _SI.items()},
    Dimension.FREQUENCY: {f"{prefix}Hz": n for prefix, n in _SI.items()},
}
"""Units that nearly all files keep to: half a second of every start goes without loading the
library, which knows all others and gives these the same values."""


def _unit_factor(unit: str, dimension: Dimension) -> float | None:
    """Return how many inside units one `unit` is, or None where it measures something else."""
    known = _EVERYDAY[dimension].get(unit)
    return _library_factor(unit, dimension) if known is None else known


@lru_cache(maxsize=1)
def _registry() -> Any:
    import pint

    registry: Any = pint.UnitRegistry(cache_folder=None)
    registry.define("FLOP = [floating_point_operation]")
    registry.define("FLOPS = FLOP / second")
    registry.define("bps = bit / second")
    return registry


@lru_cache(maxsize=512)
def _library_factor(unit: str, dimension: Dimension) -> float | None:
    """Return the same, for any unit that the library knows."""
    import pint

    registry = _registry()
    try:
        factor = float(registry.Quantity(1.0, unit).to(dimension.value).magnitude)
    except (pint.UndefinedUnitError, pint.DimensionalityError, AttributeError, ValueError):
        return None
    # "mB/s" is a thousandth of a byte to the library, and a slip for MB/s to everyone else.
    return None if dimension in _COUNTED and factor < 1 / BITS_PER_BYTE else factor


def parse_quantity(text: str, dimension: Dimension) -> float:
    """Return the quantity in `text` in inside units (seconds, bytes, ...).

    >>> parse_quantity("200 Gbps", Dimension.BANDWIDTH)
    25000000000.0
    >>> parse_quantity("80 GiB", Dimension.SIZE) == 80 * 2**30
    True

    Raises:
        ValueError: no number, no unit, or a unit of another dimension; the text shows the fix.
    """
    example = EXAMPLE[dimension]
    match = _QUANTITY.fullmatch(text.strip()) if len(text) <= _MAX_TEXT else None
    if match is None:
        raise ValueError(f'must be a number and a unit such as "{example}"')
    factor = _unit_factor(match["unit"], dimension)
    if factor is None:
        raise ValueError(
            f'{match["unit"]!r} is not a unit of {dimension.name.lower()}; write it as "{example}"'
        )
    value = float(match["number"]) * factor
    if not math.isfinite(value):
        raise ValueError("must be finite")
    return value


def format_quantity(value: float, dimension: Dimension) -> str:
    """Return the string that `parse_quantity` reads back to exactly `value`."""
    return f"{value!r} {dimension.value}"


def _quantity_type(dimension: Dimension, *, zero_allowed: bool) -> Any:
    example = EXAMPLE[dimension]

    def read(value: object, info: ValidationInfo) -> object:
        if isinstance(value, str):
            value = parse_quantity(value, dimension)
        elif info.mode == "json":
            raise ValueError(f'needs a unit; write it as a string such as "{example}"')
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError(f'must be a number and a unit such as "{example}"')
        if value < 0 or (value == 0 and not zero_allowed):
            raise ValueError("must be at least 0" if zero_allowed else "must be greater than 0")
        return float(value)

    return Annotated[
        float,
        BeforeValidator(read),
        PlainSerializer(
            lambda value: format_quantity(value, dimension), return_type=str, when_used="json"
        ),
        WithJsonSchema({"type": "string", "examples": [example], "title": dimension.value}),
    ]


Seconds = _quantity_type(Dimension.TIME, zero_allowed=True)
Bytes = _quantity_type(Dimension.SIZE, zero_allowed=True)
Bandwidth = _quantity_type(Dimension.BANDWIDTH, zero_allowed=False)
ComputeRate = _quantity_type(Dimension.COMPUTE, zero_allowed=False)
Watts = _quantity_type(Dimension.POWER, zero_allowed=True)
Hertz = _quantity_type(Dimension.FREQUENCY, zero_allowed=False)
