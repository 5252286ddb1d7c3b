"""Parts of hand-written pages that a command fills in, between two comments."""

from __future__ import annotations

import re
from pathlib import Path

from simulator.errors import InputError, Problem
from simulator.files import read_text, write_atomic


def fill_block(path: Path, name: str, body: str) -> None:
    """Replace what stands between `<!-- begin NAME -->` and `<!-- end NAME -->` in a page.

    Raises:
        InputError: the page has no such block.
    """
    write_atomic(path, filled(read_text(path), name, body, str(path)))


def filled(text: str, name: str, body: str, where: str = "") -> str:
    """Return `text` with its block `name` replaced.

    >>> filled("<!-- begin a -->old<!-- end a -->", "a", "new").split()[4:6]
    ['new', '<!--']
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.S)
    if not pattern.search(text):
        raise InputError(Problem(where=where, rule=f"has no block {begin} ... {end}"))
    return pattern.sub(lambda _: f"{begin}\n\n{body.strip()}\n\n{end}", text, count=1)
