"""Whether the condition of an `if` in a shell script holds, where that can be said."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from planner.launch.shell_words import Variables, expand, split_words

_TEXT: Mapping[str, Callable[[str, str], bool]] = {
    "==": lambda one, other: one == other,
    "=": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
}
_NUMBERS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda one, other: one == other,
    "-ne": lambda one, other: one != other,
    "-gt": lambda one, other: one > other,
    "-ge": lambda one, other: one >= other,
    "-lt": lambda one, other: one < other,
    "-le": lambda one, other: one <= other,
}
_ONE, _COMPARED = 2, 3
"""Words of a test of one value, and of two."""


def holds(condition: str, variables: Variables) -> bool | None:
    """Return whether a condition holds; None where it depends on more than known variables.

    >>> holds('[[ "$A" == "8" ]] || [ $B -gt 1 ]', {"A": ["8"], "B": ["1"]})
    True
    """
    parts = re.split(r"(\|\||&&)", condition)
    result = _test(parts[0], variables)
    for joint, part in zip(parts[1::2], parts[2::2], strict=True):
        other = _test(part, variables)
        decided = joint == "||"
        if result is decided or other is decided:
            result = decided
        elif result is None or other is None:
            result = None
    return result


def _test(text: str, variables: Variables) -> bool | None:
    found = re.fullmatch(r"\s*(?:\[\[(.*)\]\]|\[(.*)\]|test\s(.*))\s*", text, re.DOTALL)
    if found is None:
        return {"true": True, "false": False}.get(text.strip())
    raw = split_words(next(part for part in found.groups() if part is not None))
    if raw[:1] == ["!"]:
        inner = _words(raw[1:], variables)
        return None if inner is None else not inner
    return _words(raw, variables)


def _words(raw: list[str], variables: Variables) -> bool | None:
    values = [" ".join(expand([word], variables)) for word in raw]
    if len(values) == _ONE and values[0] in ("-z", "-n"):
        if values[1].strip("${}") in variables:
            return None
        # An unset variable is empty.
        empty = values[1] == "" or values[1].startswith("$")
        return empty == (values[0] == "-z")
    if len(values) != _COMPARED or any(value.startswith("$") for value in values):
        return None
    one, how, other = values
    if how in _TEXT:
        return _TEXT[how](one, other)
    if how in _NUMBERS and one.isdigit() and other.isdigit():
        return _NUMBERS[how](int(one), int(other))
    return None
