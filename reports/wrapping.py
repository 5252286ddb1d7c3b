"""Text in lines of a width that is counted in cells: a Chinese character takes two."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text, at least one, broken between words.

    A word wider than a line stays whole, as a path that is to be copied must.

    >>> wrapped("as long as it is", 7)
    ['as long', 'as it', 'is']
    """
    lines, line = [], ""
    for word in _words(text):
        if line.strip() and cell_len(line + word.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += word
    return [*lines, line.rstrip()]


def widest_word(text: str) -> int:
    """Return the cells of the widest word, which no line can be narrower than."""
    return max((cell_len(word.rstrip()) for word in _words(text)), default=0)


def _words(text: str) -> Iterator[str]:
    """Yield words with the blanks behind them; a character of two cells is a word of its own."""
    word = ""
    for character in text:
        if word and not character.isspace() and _ends(word[-1], character):
            yield word
            word = ""
        word += character
    if word:
        yield word


def _ends(last: str, following: str) -> bool:
    return last.isspace() or cell_len(last) > 1 or cell_len(following) > 1
