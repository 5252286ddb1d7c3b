"""Names of many nodes in one expression, as Slurm writes them."""

from __future__ import annotations

import re
from itertools import product

MAX_NAMES = 2**17
"""Names that one expression may stand for: more than any cluster has nodes."""
_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\],\s]+)|(.)")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?(?:/(\d{1,6}))?")


def expand_hostlist(text: str) -> list[str]:
    """Return the names that an expression stands for, in order.

    >>> expand_hostlist("node[08-10,20],login")
    ['node08', 'node09', 'node10', 'node20', 'login']
    >>> expand_hostlist("rack[1-2]n[1-2]")
    ['rack1n1', 'rack1n2', 'rack2n1', 'rack2n2']

    Raises:
        ValueError: it is none, or stands for more than `MAX_NAMES` names; the text says the rule.
    """
    names: list[str] = []
    for expression in _split(text):
        parts = [_choices(match) for match in _PART.finditer(expression)]
        count = 1
        for choices in parts:
            count *= len(choices)
        if len(names) + count > MAX_NAMES:
            raise ValueError(f"must stand for at most {MAX_NAMES} names")
        names += ["".join(chosen) for chosen in product(*parts)]
    return names


def _split(text: str) -> list[str]:
    """Return the expressions between the commas that stand outside brackets."""
    if text.count("[") != text.count("]"):
        raise ValueError("must close each bracket, as in node[01-16]")
    found, depth, start = [], 0, 0
    for place, letter in enumerate(text + ","):
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            raise ValueError("must not have brackets inside brackets")
        if letter == "," and depth == 0:
            found.append(text[start:place].strip())
            start = place + 1
    if not all(found):
        raise ValueError("must be names with commas between them, such as node[01-16],node20")
    return found


def _choices(match: re.Match[str]) -> list[str]:
    if match[3] is not None:
        raise ValueError(f"must not hold {match[3]!r}; write names such as node[01-16],node20")
    if match[1] is None:
        return [match[2]]
    return [number for part in match[1].split(",") for number in _numbers(part.strip())]


def _numbers(part: str) -> list[str]:
    """Return the numbers of one part of a bracket, all as wide as its first."""
    match = _RANGE.fullmatch(part)
    if match is None:
        raise ValueError(f"{part[:40]!r} in brackets must be a number or a range such as 01-16")
    first, last, step = match[1], match[2] or match[1], int(match[3] or 1)
    if int(last) < int(first) or step < 1:
        raise ValueError(f"{part!r} must go from a lower number to a higher one")
    count = (int(last) - int(first)) // step + 1
    if count > MAX_NAMES:
        raise ValueError(f"must stand for at most {MAX_NAMES} names")
    return [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1, step)]
