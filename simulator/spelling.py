"""The word that was meant where another was written."""

from __future__ import annotations

import difflib


def nearest(word: str, choices: list[str]) -> str:
    """Return `did you mean ...` for a misspelt word, or the list of choices."""
    close = difflib.get_close_matches(word, choices, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return "one of: " + ", ".join(sorted(choices))
