"""Sentences that results hold, put into another language by the templates that they were made from.

A result is read long after it was made, by people of another language than that of who made it, so
its sentences stay English in the file. A catalogue holds their templates; what fills a field may
hold a sentence, a term or a list of them again. A test finds every template in the code that makes
sentences (tests/reports/test_held.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import Formatter
from typing import Self

_STOP = "."
_FILLS = {"": ".+?", "n": r"[-+]?\d[\d.,e+-]*", "w": r"\S+"}
"""What a field may be filled with, by what the template says of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """A template that sentences are recognised by."""

    pattern: re.Pattern[str]
    template: str
    weight: int
    """Letters that are no fields: of two templates that fit, the one with more is meant."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldSentences:
    """The templates of one language, its terms, and what stands between the parts of a list."""

    forms: tuple[_Form, ...]
    terms: Mapping[str, str]
    marks: Mapping[str, str]

    @classmethod
    def of(
        cls,
        templates: Mapping[str, str],
        terms: Mapping[str, str],
        marks: Mapping[str, str],
        frames: Mapping[str, str] | None = None,
    ) -> Self:
        """Return the templates, those with most letters first; `terms` are put in as they are.

        Frames stand round other templates and are recognised before them.
        """
        whole = {english: other for english, other in templates.items() if "{" not in english}
        made = {english: other for english, other in templates.items() if "{" in english}
        forms = (*_ordered(frames or {}), *_ordered(made))
        return cls(forms=forms, terms={**terms, **whole}, marks=marks)

    def told(self, text: str) -> str:
        """Return a text in the other language as far as it is known, else as it is.

        >>> forms, terms = {"{what} takes {time} more": "{time} mehr: {what}"}, {"rest": "Rast"}
        >>> held = HeldSentences.of(forms, terms, {" and ": " und "})
        >>> held.told("rest takes 3 s more"), held.told("rest and work"), held.told("work")
        ('3 s mehr: Rast', 'Rast und work', 'work')
        """
        return _told(self, text) or text

    @property
    def stop(self) -> str:
        """The end of a sentence."""
        return self.marks.get(_STOP, _STOP)


@lru_cache(maxsize=10_000)
def _told(held: HeldSentences, text: str) -> str | None:
    """Return a text in the other language; None where nothing of it is known."""
    if (term := held.terms.get(text) or held.terms.get(text[:1].lower() + text[1:])) is not None:
        return term
    for form in held.forms:
        found = form.pattern.fullmatch(text)
        if found is not None:
            fields = found.groupdict().items()
            return form.template.format(**{name: held.told(value) for name, value in fields})
    return _told_in_parts(held, text)


def _told_in_parts(held: HeldSentences, text: str) -> str | None:
    for mark, other in held.marks.items():
        parts = text.split(mark) if mark != _STOP else []
        told = [_told(held, part) for part in parts] if len(parts) > 1 else []
        if any(told):
            return other.join(new or old for new, old in zip(told, parts, strict=True))
    return None


def _ordered(templates: Mapping[str, str]) -> list[_Form]:
    forms = [_form(english, other) for english, other in templates.items()]
    return sorted(forms, key=lambda form: -form.weight)


def _form(english: str, other: str) -> _Form:
    parts = list(Formatter().parse(english))
    pattern = "".join(
        re.escape(literal) + (f"(?P<{name}>{_FILLS[spec or '']})" if name else "")
        for literal, name, spec, _ in parts
    )
    weight = sum(len(literal) for literal, *_ in parts)
    assert weight, english
    return _Form(pattern=re.compile(pattern, re.DOTALL), template=other, weight=weight)
