"""The sentences of reports in other languages: English templates are the keys of a catalogue.

`words = words_in("zh")` makes `words("{count} layouts", count="12")` Chinese. What a template's
fields are filled with comes from the input, or from `reports.quantities`, and stays as it is.
`words.held(sentence)` is for sentences that a result holds, which were made from templates that
only the code that made them knows: `reports.held` recognises them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from string import Formatter

from reports.held import HeldSentences


class Language(StrEnum):
    """A language of reports; the value is its tag in HTML."""

    ENGLISH = "en"
    CHINESE = "zh"


@dataclass(frozen=True, slots=True)
class Words:
    """Puts templates and sentences into a language; those that it lacks stay English."""

    language: Language

    def __call__(self, template: str, /, **values: object) -> str:
        """Return a template in the language, with its fields filled in.

        Without values nothing is filled in, so that a name of the input may hold braces.
        """
        text = template if self._is_english else catalogue_of(self.language).get(template, template)
        return text.format(**values) if values else text

    def held(self, text: str) -> str:
        """Return a sentence, or a part of one, that a result holds in English."""
        return text if self._is_english else held_sentences(self.language).told(text)

    def sentence(self, text: str) -> str:
        """Return a sentence that a result holds, with a full stop.

        It may begin with a name, so that no capital is made.
        """
        text = text.strip()
        if self._is_english:
            return text if text.endswith((".", "!", "?")) else f"{text}."
        return self.held(text.removesuffix(".")) + held_sentences(self.language).stop

    @property
    def _is_english(self) -> bool:
        return self.language is Language.ENGLISH


@cache
def words_in(language: Language) -> Words:
    """Return what puts templates into a language."""
    return Words(language)


english = words_in(Language.ENGLISH)
"""Templates as they are."""


@cache
def catalogue_of(language: Language) -> dict[str, str]:
    """Return the templates of a language by their English."""
    return _entries(f"{language}.toml", "words")


@cache
def held_sentences(language: Language) -> HeldSentences:
    """Return what recognises the sentences of results; terms of the catalogue may stand in them."""
    name = f"{language}-held.toml"
    return HeldSentences.of(
        _entries(name, "held"),
        catalogue_of(language),
        _entries(name, "marks"),
        _entries(name, "frames"),
    )


def _entries(name: str, table: str) -> dict[str, str]:
    import tomllib

    text = files("reports").joinpath("catalogues", name).read_text("utf-8")
    entries: dict[str, str] = tomllib.loads(text)[table]
    return entries


def fields_of(template: str) -> set[str]:
    """Return the names of a template's fields.

    >>> sorted(fields_of("{count} of {all}"))
    ['all', 'count']
    """
    return {name for _, name, _, _ in Formatter().parse(template) if name}
