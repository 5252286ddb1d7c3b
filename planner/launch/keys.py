"""Reads the keys of a file one by one, and remembers what became of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import inf, isfinite
from typing import Any, TypeVar

from simulator.errors import InputError, Problem

FILL_IN = "FILL_IN"
"""Stands in launch files for what only the user knows; read, it is a missing value."""
_SHOWN = 60
_YES = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_VARIABLE = re.compile(r"\$\{?(\w+)")
Value = TypeVar("Value")


def as_spelt(name: str) -> str:
    """Return a name as it is."""
    return name


def overridden(option: str, value: Any, where: str, says: str) -> str:
    """Return the note that an option counts, and not what a file says.

    >>> overridden("--nodes", 4, "train.sh", "--nnodes 2")
    '--nodes 4 counts, although train.sh says --nnodes 2'
    """
    return f"{option} {value} counts, although {where} says {says}"


class Keys:
    """The keys of one launch file: owner of what was read, what has no effect, what is wrong.

    Values are those of TOML, JSON and YAML, or the words of a command line: text, lists of text,
    or true for a flag alone.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        where: str,
        *,
        spell: Callable[[str], str] = as_spelt,
        ignore: frozenset[str] = frozenset(),
    ) -> None:
        self.values, self.where, self.spell, self.ignored = dict(values), where, spell, ignore
        self.read: list[str] = []
        self.unused: list[str] = []
        self.notes: list[str] = []
        self.problems: list[Problem] = []
        self.lost: Mapping[str, int] = {}
        """Shell variables whose value only a run can tell, and the line that sets them."""

    def given(self, name: str) -> bool:
        """Return whether a key stands in the file with a value that is not null."""
        return self.values.get(name) is not None

    def override(self, name: str, value: Any, option: str) -> None:
        """Let an option have the last word on a key, and note what else the file says."""
        before = self.values.get(name)
        if isinstance(before, list) and len(before) == 1:
            before = before[0]
        self.values[name] = value
        if before in (None, FILL_IN) or _VARIABLE.search(str(before)):
            return
        if str(before) != str(value):
            self.notes.append(overridden(option, value, self.where, f"{self.spell(name)} {before}"))

    def take(self, name: str) -> Any:
        """Return the value of a key as it stands, None where it does not; counts as read."""
        if name in self.values and name not in self.read:
            self.read.append(name)
        value = self.values.get(name)
        if value == FILL_IN:
            return None
        return value[0] if isinstance(value, list) and len(value) == 1 else value

    def whole(self, name: str, default: Value | None = None, least: int = 1) -> Any:
        """Return a whole number of at least `least`."""
        value = self.take(name)
        if value is None:
            return default
        if self._unset(name, value):
            return default
        try:
            number = int(value) if not isinstance(value, bool | float) else None
        except (TypeError, ValueError):
            number = None
        if number is None or number < least:
            self.wrong(name, f"must be a whole number of at least {least}")
            return default
        return number

    def real(
        self, name: str, default: float | None = None, *, least: float = -inf, most: float = inf
    ) -> float | None:
        """Return a finite number from `least` to `most`."""
        value = self.take(name)
        if value is None or self._unset(name, value):
            return default
        try:
            number = float(value)
        except (TypeError, ValueError):
            self.wrong(name, "must be a number")
            return default
        if isfinite(number) and least <= number <= most:
            return number
        upper = f" and at most {most:g}" if most < inf else ""
        lower = f" of at least {least:g}" if least > -inf else ""
        self.wrong(name, f"must be a finite number{lower}{upper}")
        return default

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a switch: true where a flag stands alone."""
        value = self.take(name)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        known = _YES.get(str(value).lower())
        if known is None:
            self.wrong(name, "must be true or false")
            return default
        return known

    def word(self, name: str, choices: Mapping[str, Value], default: Value) -> Value:
        """Return what a word stands for; every other word is a problem."""
        value = self.take(name)
        if value is None:
            return default
        if self._unset(name, value):
            return default
        found = choices.get(str(value), choices.get(str(value).lower()))
        if found is None:
            rule = "is not modelled" if choices else "is not understood"
            self.wrong(name, rule, "one of: " + ", ".join(choices))
            return default
        return found

    def _unset(self, name: str, value: Any) -> bool:
        """Complain where a value is a shell variable, or a placeholder, that nobody has set."""
        text = str(value)
        variable = _VARIABLE.search(text)
        if variable is not None:
            fix, line = f"--set {variable[1]}=VALUE", self.lost.get(variable[1])
            rule = "uses a variable that is not set"
            if line is not None:
                rule = (
                    f"uses ${variable[1]}, which line {line} sets to what only a run of the script "
                    "can tell"
                )
            self.complain(name, rule, found=text[:_SHOWN], fix=fix)
        return variable is not None

    def need(self, *names: str) -> None:
        """Remember a problem for each key that is missing."""
        for name in names:
            if not self.given(name):
                self.complain(name, "is needed for a forecast, and is missing")

    def wrong(self, name: str, rule: str, fix: str = "") -> None:
        """Remember that the value of a key breaks a rule."""
        self.complain(name, rule, found=repr(self.values.get(name))[:_SHOWN], fix=fix)

    def complain(self, name: str, rule: str, *, found: str = "", fix: str = "") -> None:
        """Remember a problem with a key."""
        problem = Problem(where=self.where, key=self.spell(name), found=found, rule=rule, fix=fix)
        if problem not in self.problems:
            self.problems.append(problem)

    def settle(
        self, harmless: re.Pattern[str], noted: Mapping[str, re.Pattern[str]] | None = None
    ) -> None:
        """Sort the keys that nothing has read: without effect, noted, or refused by name.

        `noted` says of keys with a small effect why the forecast leaves them out.
        """
        for name, value in self.values.items():
            if name in self.read:
                if {name, self.spell(name)} & self.ignored:
                    spelt = self.spell(name)
                    self.notes.append(
                        f"--ignore {spelt} is without effect: the forecast follows it"
                    )
                continue
            why = [text for text, names in (noted or {}).items() if names.fullmatch(name)]
            if why and value not in (None, False):
                self.notes.append(f"{self.spell(name)}: {why[0]}")
            elif (
                why
                or (
                    harmless.fullmatch(name)
                    or name in self.ignored
                    or self.spell(name) in self.ignored
                )
                or value is None
                or value is False
                or value in ("", [], {})
            ):
                self.unused.append(name)
            else:
                self.complain(
                    name,
                    "is not understood, and could change compute or memory",
                    found=repr(value)[:_SHOWN],
                    fix=f"leave it out, or --ignore {self.spell(name)} if it changes neither",
                )

    def close(self) -> None:
        """Raise `InputError` with all that was wrong."""
        if self.problems:
            raise InputError(*self.problems)
