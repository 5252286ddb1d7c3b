"""Command-line flags as a table of keys, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

_LAUNCHER = {
    "nodes": ("nnodes", "num_nodes"),
    "gpus": ("nproc_per_node", "num_gpus", "gpus_per_node"),
}
"""Options of torchrun and deepspeed."""
_NEGATIVE = re.compile(r"-\d+(\.\d+)?(e-?\d+)?")


def parse_flags(words: Sequence[str]) -> dict[str, Any]:
    """Return flag -> value: text, a list of texts, or true where a flag stands alone.

    `--a b`, `--a=b` and `--a b c` are read; the last of two equal flags counts, as in argparse.

    >>> parse_flags(["--num-layers", "96", "--bf16", "--split=1,2"])
    {'num_layers': '96', 'bf16': True, 'split': '1,2'}
    """
    found: dict[str, Any] = {}
    name = ""
    for word in words:
        if word.startswith("--") or (word.startswith("-") and not _NEGATIVE.fullmatch(word)):
            name, joined, value = word.lstrip("-").partition("=")
            name = name.replace("-", "_")
            found[name] = value if joined else True
        elif name:
            before = found[name]
            values = [] if before is True else before if isinstance(before, list) else [before]
            found[name] = [*values, word] if values else word
    return found


def launcher_size(words: Sequence[str]) -> tuple[int | None, int | None]:
    """Return nodes and processes a node that a launcher's words say, None where they do not."""
    flags = parse_flags(words)
    found = []
    for names in _LAUNCHER.values():
        texts = [str(flags[name]) for name in names if name in flags]
        number = texts[0].split(":")[-1].rstrip("\"'") if texts else ""
        found.append(int(number) if number.isdigit() and int(number) else None)
    return found[0], found[1]


def flag_words(name: str, value: Any, *, dash: str = "-") -> list[str]:
    """Return the words that say a key on a command line; a false or missing value says nothing.

    `dash` is what stands in a flag where a key has an underscore.
    """
    if value is None or value is False:
        return []
    flag = "--" + name.replace("_", dash)
    if value is True:
        return [flag]
    values: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
    return [flag, *map(str, values)]
