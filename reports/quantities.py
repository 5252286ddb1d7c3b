"""Numbers as text: four digits, a unit that fits, never an exponent where a person would not."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.units import GIB, MS, SECONDS_PER_DAY, SECONDS_PER_HOUR, US

_DIGITS = 4
_LARGE = 10**15
_SECONDS_PER_MINUTE = 60.0


def number(value: float, digits: int = _DIGITS) -> str:
    """Return `value` with at least `digits` significant digits and thousands separated.

    >>> number(1234567.8), number(17.2345), number(0.0123456)
    ('1,234,568', '17.23', '0.01235')
    """
    if value == 0:
        return "0"
    if abs(value) >= _LARGE or abs(value) < US:
        return f"{value:.{digits - 1}e}"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else -_leading_zeros(abs(value))
    return f"{value:,.{max(0, digits - whole)}f}"


def seconds(value: float, digits: int = _DIGITS) -> str:
    """Return a duration with the unit in which it is easily read, up to days.

    >>> seconds(17.234), seconds(0.00321), seconds(7200), seconds(864000)
    ('17.23 s', '3.210 ms', '2.000 h', '10.00 days')
    >>> seconds(167.58, 2)
    '2.8 min'
    """
    if value >= 2 * SECONDS_PER_DAY:
        return f"{number(value / SECONDS_PER_DAY, digits)} days"
    if value >= SECONDS_PER_HOUR:
        return f"{number(value / SECONDS_PER_HOUR, digits)} h"
    if value >= 2 * _SECONDS_PER_MINUTE:
        return f"{number(value / _SECONDS_PER_MINUTE, digits)} min"
    if value >= 1 or value == 0:
        return f"{number(value, digits)} s"
    if value >= MS:
        return f"{number(value / MS, digits)} ms"
    return f"{number(value / US, digits)} us"


def days_as_time(days: float, digits: int = _DIGITS) -> str:
    """Return what is kept in days with the unit in which it is easily read.

    >>> days_as_time(12.5), days_as_time(0.25)
    ('12.50 days', '6.000 h')
    """
    return seconds(days * SECONDS_PER_DAY, digits)


def unit_of_days(values: Sequence[float]) -> tuple[str, float]:
    """Return the unit of a column that is kept in days, and how many of it are a day.

    >>> unit_of_days([0.5, 30.0]), unit_of_days([0.5]), unit_of_days([0.01])
    (('days', 1.0), ('hours', 24.0), ('minutes', 1440.0))
    """
    longest = max(values, default=1.0)
    for unit, of_a_day in (("days", 1.0), ("hours", 24.0)):
        if longest * of_a_day >= 1:
            return unit, of_a_day
    return "minutes", SECONDS_PER_DAY / _SECONDS_PER_MINUTE


def gibibytes(value: float) -> str:
    """Return bytes as GiB with two decimals, without the unit.

    >>> gibibytes(80 * 2**30)
    '80.00'
    """
    return f"{value / GIB:,.2f}"


def counted(count: int, thing: str) -> str:
    """Return a number of things.

    >>> counted(1, "point"), counted(1200, "point")
    ('1 point', '1,200 points')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def percent(value: float) -> str:
    """Return a share as a percentage with one decimal.

    >>> percent(0.4567)
    '45.7 %'
    """
    return f"{100 * value:.1f} %"


def signed_percent(value: float) -> str:
    """Return a signed error as a percentage.

    >>> signed_percent(-0.034)
    '-3.4 %'
    """
    return f"{100 * value:+,.1f} %"


def parameters(count: float) -> str:
    """Return a parameter count in the unit of the field.

    >>> parameters(8_030_261_248), parameters(124_439_808)
    ('8.030 B', '124.4 M')
    """
    for size, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if count >= size:
            return f"{number(count / size)} {unit}"
    return number(count)


def plain(text: str) -> str:
    """Return user text on one line, without characters that would control a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def _leading_zeros(value: float) -> int:
    """Return the zeros between the decimal point and the first digit of a number below 1.

    >>> _leading_zeros(0.0123), _leading_zeros(0.9)
    (1, 0)
    """
    return -int(f"{value:e}".partition("e")[2]) - 1
