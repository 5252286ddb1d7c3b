"""The sentences of reports in other languages: English templates are the keys of a catalogue.

`words = words_in("zh")` makes `words("{count} layouts", count="12")` Chinese. What a template's
fields are filled with comes from the input, or from `reports.quantities`, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import TypeAlias


class Language(StrEnum):
    """A language of reports; the value is its tag in HTML."""

    ENGLISH = "en"
    CHINESE = "zh"


Words: TypeAlias = Callable[..., str]
"""Takes an English template and the values of its fields; returns the text."""


def words_in(language: Language) -> Words:
    """Return what puts templates into a language; those that it lacks stay English.

    Without values nothing is filled in, so that a name of the input may hold braces.
    """
    catalogue = {} if language is Language.ENGLISH else catalogue_of(language)

    def words(template: str, /, **values: object) -> str:
        text = catalogue.get(template, template)
        return text.format(**values) if values else text

    return words


english = words_in(Language.ENGLISH)
"""Templates as they are."""


@cache
def catalogue_of(language: Language) -> dict[str, str]:
    """Return the templates of a language by their English."""
    import tomllib

    text = files("reports").joinpath("catalogues", f"{language}.toml").read_text("utf-8")
    entries: dict[str, str] = tomllib.loads(text)["words"]
    return entries


def fields_of(template: str) -> set[str]:
    """Return the names of a template's fields.

    >>> sorted(fields_of("{count} of {all}"))
    ['all', 'count']
    """
    return {name for _, name, _, _ in Formatter().parse(template) if name}
