"""Words of a shell script: quotes, variables, arrays and arithmetic, without running anything.

A variable that is not set stays as `$NAME`, so that only a key that needs its value complains.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence

Variables = dict[str, list[str]]
"""Name -> words; a plain variable has one."""

_REFERENCE = re.compile(
    r"\$\(\((?P<sum>[^()]*(?:\([^()]*\)[^()]*)*)\)\)"
    r"|\$\{(?P<array>[A-Za-z_]\w*)\[[@*]\]\}"
    r"|\$\{(?P<name>\w+)(?P<how>:?[-=])(?P<default>(?:[^{}]|\{[^{}]*\})*)\}"
    r"|\$\{(?P<braced>\w+)\}"
    r"|\$(?P<plain>[A-Za-z_]\w*|\d)"
)
_WHOLE_ARRAY = re.compile(r"\"\$\{(\w+)\[@\]\}\"")
"""A quoted array: its words stay whole."""
_BLANK = " \t\n"
_ARITHMETIC: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
LONGEST = 128 * 2**10
"""Characters of one expansion, and words of one array: what Linux hands on (MAX_ARG_STRLEN)."""
UNSET = re.compile(r"\$\{?(\w+)")
"""A variable that was used and not set."""


class TooLongError(Exception):
    """A word or an array grew beyond `LONGEST`."""


def split_words(text: str) -> list[str]:
    """Return the words of a command, each with its quotes; a comment ends them.

    >>> split_words('--a "b c" $X # why')
    ['--a', '"b c"', '$X']
    """
    words, word, quote, depth = [], "", "", 0
    for place, char in enumerate(text):
        if quote:
            word += char
            quote = "" if char == quote and text[place - 1] != "\\" else quote
        elif char in "'\"":
            word, quote = word + char, char
        elif char == "#" and not word and not depth:
            break
        elif char in _BLANK and not depth:
            words += [word] if word else []
            word = ""
        else:
            depth += (char in "({") - (char in ")}")
            word += char
    return [*words, word] if word else words


def expand(words: Sequence[str], variables: Variables) -> list[str]:
    """Return words as the shell hands them on, variables filled in and quotes taken off."""
    found: list[str] = []
    for word in words:
        if word.startswith("'") and word.endswith("'") and len(word) > 1:
            found.append(word[1:-1])
            continue
        array = _WHOLE_ARRAY.fullmatch(word)
        if array is not None:
            found += variables.get(array[1], [])
            _limit(len(found))
            continue
        quoted = word.startswith('"') and word.endswith('"') and len(word) > 1
        filled = substitute(word[1:-1] if quoted else word, variables)
        plain = filled if quoted else filled.replace('"', "").replace("'", "")
        found += [plain] if quoted else plain.split()
    return found


def substitute(text: str, variables: Variables) -> str:
    """Return `text` with its variables, arrays and sums filled in where they are known.

    Raises:
        TooLongError: more than any shell would hand on.

    >>> substitute("$A-${B:-2}-$((A * 3))-$C", {"A": ["4"]})
    '4-2-12-$C'
    """
    length = 0

    def value(match: re.Match[str]) -> str:
        nonlocal length
        text = filled(match)
        length += len(text)
        _limit(length)
        return text

    def filled(match: re.Match[str]) -> str:
        if match["sum"] is not None:
            return _sum(substitute(_named(match["sum"]), variables), match[0])
        if match["name"] is not None:
            known = variables.get(match["name"])
            empty = known == [""] and match["how"].startswith(":")
            default = substitute(match["default"].strip("\"'"), variables)
            return default if known is None or empty else " ".join(known)
        name = match["array"] or match["braced"] or match["plain"]
        return " ".join(variables[name]) if name in variables else match[0]

    return _REFERENCE.sub(value, text)


def _limit(length: int) -> None:
    if length > LONGEST:
        raise TooLongError


def _named(text: str) -> str:
    """Return a sum with its bare names, which need no dollar sign, marked as variables."""
    return re.sub(r"(?<![$\w{])([A-Za-z_]\w*)", r"$\1", text)


def _sum(text: str, unknown: str) -> str:
    """Return the value of a sum of whole numbers, or `unknown` where it is not one."""
    try:
        return str(_value(ast.parse(text.replace("/", "//").strip(), mode="eval").body))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        # The parser of deeply nested text says MemoryError.
        return unknown


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        return _ARITHMETIC[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError("not a sum of whole numbers")
