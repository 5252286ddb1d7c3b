"""The exception tree: every user error says where, what was found, the rule and the fix."""

from __future__ import annotations

from dataclasses import dataclass

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with one input.

    `where` is a file, `key` the path inside it, `found` what stands there, `rule` the rule with
    its numbers and `fix` the nearest legal alternative. Empty strings are left out.
    """

    where: str = ""
    key: str = ""
    found: str = ""
    rule: str
    fix: str = ""

    def __str__(self) -> str:
        where, key, found, rule, fix = map(
            _printable, (self.where, self.key, self.found, self.rule, self.fix)
        )
        place = ": ".join(part for part in (where, key) if part)
        text = f"{place}: {rule}" if place else rule
        if found:
            text += f" (found {found})"
        return f"{text}\n    fix: {fix}" if fix else text


class TraincastError(Exception):
    """Root of all errors that a user can cause; `exit_code` is what the CLI returns."""

    exit_code = EXIT_BAD_INPUT

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


class InputError(TraincastError):
    """A file or a value is wrong; holds all problems found in it, not only the first."""


class UnsupportedError(InputError):
    """The input is well-formed but asks for something that is not modelled; it names it."""


class InfeasibleError(TraincastError):
    """The input is fine but nothing satisfies it (no layout fits, a batch does not divide)."""

    exit_code = EXIT_FAILED


def _printable(text: str) -> str:
    """Return text with escapes for all that would end a line or control a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
