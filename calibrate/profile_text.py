"""A profile as the text of one TOML file, with its constants in a table of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import tomlkit

from simulator.hardware.profile import Profile
from simulator.units import GB, GIB, KIB, MIB, MS, TERA, US

_QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?) (s|B|B/s|FLOP/s|Hz|W)")
_SCALES: Mapping[str, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (MS, "ms"), (US, "us"), (1e-9, "ns")),
    "B": ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"), (1.0, "B")),
    "B/s": ((1e12, "TB/s"), (GB, "GB/s"), (1e6, "MB/s"), (1.0, "B/s")),
    "FLOP/s": ((TERA, "TFLOP/s"), (1e9, "GFLOP/s"), (1.0, "FLOP/s")),
    "Hz": ((1e9, "GHz"), (1e6, "MHz"), (1.0, "Hz")),
    "W": ((1.0, "W"),),
}
"""Units of a file, the largest first."""
_DIGITS = 10
"""Of a number in a file; constants have four."""
_SHORT = 8
"""Characters of a number that is easy to read."""


def profile_text(profile: Profile) -> str:
    """Return the file that `load_profile` reads back, to 10 digits."""
    machine = profile.machine.model_dump(mode="json", exclude_none=True)
    constants = profile.constants.model_dump(mode="json", exclude_none=True)
    document = tomlkit.document()
    document.add(tomlkit.comment(f"{profile.machine.title}. Written by `traincast calibrate fit`."))
    for key, value in machine.items():
        if key != "constants":
            document.add(key, tomlkit.item(_shown(value)))
    document.add("constants", tomlkit.item(_shown(constants)))
    return tomlkit.dumps(document)


def _shown(value: Any) -> Any:
    """Return a value as a person writes it; empty tables and lists are left out."""
    match value:
        case Mapping():
            shown = {key: _shown(item) for key, item in value.items()}
            plain = {key: item for key, item in shown.items() if not isinstance(item, dict)}
            return {**plain, **{key: item for key, item in shown.items() if item not in ({}, [])}}
        case list() | tuple():
            return [_shown(item) for item in value]
        case str():
            match = _QUANTITY.fullmatch(value)
            return _quantity(float(match[1]), match[2]) if match else value
        case _:
            return value


def _quantity(value: float, unit: str) -> str:
    """Return a quantity in the largest unit in which it is a short number.

    >>> _quantity(3.35e12, "B/s"), _quantity(5e-06, "s"), _quantity(0.0, "s")
    ('3.35 TB/s', '5 us', '0 s')
    """
    for scale, name in _SCALES[unit] if value else ((1.0, unit),):
        text = f"{value / scale:.{_DIGITS}g}"
        if abs(value) >= scale * bool(value) and len(text) <= _SHORT:
            return f"{text} {name}"
    return f"{value!r} {unit}"
