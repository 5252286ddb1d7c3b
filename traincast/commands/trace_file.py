"""Traces as files: JSON, packed where the file's name says so."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any

from traincast.commands.output import as_json

_PACKED = ".gz"
_LEVEL = 6
"""Of zlib: its default; a trace becomes about a tenth of its size."""


def trace_file(trace: Mapping[str, Any], target: str) -> str | bytes:
    """Return a trace as the content of the file `target`: gzip where its name ends with .gz.

    Equal traces are equal files: no time of writing is kept.
    """
    text = as_json(trace, compact=True)
    if not target.lower().endswith(_PACKED):
        return text
    return gzip.compress(text.encode("utf-8"), compresslevel=_LEVEL, mtime=0)
