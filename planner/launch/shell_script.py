"""Reads the command that a shell script starts: its variables, arrays and conditions, not run.

What cannot be known without running the script (loops, functions, command substitution, tests of
files) is left out where it holds no arguments, and refused by its line where it does.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from planner.launch.keys import overridden
from planner.launch.shell_tests import holds
from planner.launch.shell_words import (
    LONGEST,
    UNSET,
    TooLongError,
    Variables,
    expand,
    split_words,
    substitute,
)
from simulator.errors import InputError, Problem

_ASSIGNMENT = re.compile(r"(?:(?:export|local|readonly|declare)\s+)?([A-Za-z_]\w*)(\+?=)(.*)", re.S)
_SETS = re.compile(r"(?:^|[\s;&|()])([A-Za-z_]\w*)\+?=(?!=)")
"""A variable that is set somewhere in a statement that is not followed."""
_READS = re.compile(r"(?:^|[\s;&|()])(?:read|mapfile|readarray|getopts)\s+([^;&|<>]*)")
"""A statement that sets the variables it names to what only a run can tell."""
_UNSETS = re.compile(r"unset\s+(?:-v\s+)?(\w+(?:\s+\w+)*)")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_TARGET = re.compile(r"(?<![<0-9&])>\s*(\S+)")
_ARGUMENT = re.compile(r"(?<!\S)[\"']?--\w")
_OPENS = {"for": "done", "while": "done", "until": "done", "case": "esac"}
_FUNCTION = re.compile(r"(?:function\s+)?\w+\s*\(\)\s*\{?")
_MODULE = re.compile(r"[\w./${}-]*\.py")
_MOST_JOINED = 2000
"""Lines of one statement; as each is looked at with all before it, more would take minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that starts a Python program."""

    launcher: tuple[str, ...]
    """Words before the program."""
    program: str
    arguments: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Variables that options set, and the script otherwise."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """Variables of which only a run of the script can tell the value, and the line that sets it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a script does, as far as it concerns a launch."""

    commands: tuple[Command, ...]
    written: Mapping[str, str]
    """Files that it writes from here-documents."""
    variables: Mapping[str, str]


def read_script(text: str, where: str, given: Mapping[str, str]) -> Script:
    """Return the commands of a script; `given` sets variables that it uses and does not set.

    Raises:
        InputError: arguments stand where only running the script could tell whether they count,
            or the script is more than can be followed.
    """
    reader = _Reader(where, given)
    try:
        reader.block(_joined(text))
    except (TooLongError, RecursionError) as error:
        rule = (
            f"is no launch script: a statement of over {LONGEST:,} characters or "
            f"{_MOST_JOINED:,} lines, or conditions that nest too deeply"
        )
        raise InputError(Problem(where=where, rule=rule)) from error
    return Script(
        commands=tuple(
            replace(each, notes=tuple(reader.notes), lost=reader.lost) for each in reader.commands
        ),
        written=reader.written,
        variables={name: " ".join(words) for name, words in reader.variables.items()},
    )


def _joined(text: str) -> list[tuple[int, str]]:
    """Return numbered statements: continued lines, arrays and here-documents in one each."""
    statements: list[tuple[int, str]] = []
    raw = text.split("\n")
    place = 0
    while place < len(raw):
        first, line = place + 1, raw[place]
        place += 1
        heredoc = _HEREDOC.search(line)
        if heredoc:
            while place < len(raw) and raw[place].strip() != heredoc[2]:
                line += "\n" + raw[place]
                place += 1
            place += 1
        else:
            while place < len(raw) and (line.rstrip().endswith("\\") or _is_open(line)):
                joint = _uncommented(line).rstrip()
                line = (joint[:-1] if joint.endswith("\\") else joint) + " " + raw[place]
                place += 1
                if len(line) > LONGEST or place - first > _MOST_JOINED:
                    raise TooLongError
        statements += [(first, part) for part in ([line] if heredoc else _cut(line))]
    return statements


def _is_open(line: str) -> bool:
    """Return whether an array or a quotation begins in a line and does not end there."""
    bare = re.sub(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"", "", _uncommented(line))
    if "'" in bare or '"' in bare:
        return True
    bare = re.sub(r"\$\(\(.*?\)\)", "", bare)
    return "=(" in bare and bare.count("(") > bare.count(")")


def _uncommented(line: str) -> str:
    return re.sub(r"(?<!\S)#(?![^'\"]*['\"]\s*$).*$", "", line)


def _cut(line: str) -> list[str]:
    """Return the statements of a line, cut at semicolons outside quotes."""
    if line.lstrip().startswith("#"):
        return []
    parts = re.findall(r"(?:[^;'\"]|'[^']*'|\"(?:\\.|[^\"\\])*\"|'|\")+", line)
    cut = [re.sub(r"^(then|do|else)\s+(?=\S)", "", part.strip()) for part in parts]
    kept = [part for part in cut if part and part not in ("then", "do")]
    starts_else = re.match(r"\s*else\s+\S", line)
    return ["else", *kept] if starts_else else kept


class _Reader:
    """Goes through the statements of one script once."""

    def __init__(self, where: str, given: Mapping[str, str]) -> None:
        self.where = where
        self.given = given
        self.variables: Variables = {name: [value] for name, value in given.items()}
        self.written: dict[str, str] = {}
        self.commands: list[Command] = []
        self.notes: list[str] = []
        self.lost: dict[str, int] = {}
        self.number = 0
        """Line of the statement that is read."""

    def block(self, lines: list[tuple[int, str]]) -> None:
        place = 0
        while place < len(lines):
            number, line = lines[place]
            word = (line.split() or [""])[0]
            if word == "if":
                end = _end(lines, place, "if", "fi")
                self._if(lines[place:end])
            elif word in _OPENS:
                end = _end(lines, place, word, _OPENS[word])
                self._left_out(number, lines[place:end], f"a {word}")
            elif _FUNCTION.fullmatch(line):
                end = _end(lines, place, "{", "}")
                self._left_out(number, lines[place:end], "a function")
            else:
                end = place + 1
                self.number = number
                self._statement(line)
            place = end

    def _left_out(
        self, number: int, lines: list[tuple[int, str]], what: str, condition: str = ""
    ) -> None:
        for at, line in lines:
            if _ARGUMENT.search(line) and "=" not in line.split()[0]:
                raise InputError(self._not_followed(number, at, what, condition))
        for at, line in lines:
            self.number = at
            self._forget(line)

    def _not_followed(self, number: int, at: int, what: str, condition: str) -> Problem:
        """Return the problem of arguments in line `at`, whose block begins in line `number`."""
        asked = dict.fromkeys(UNSET.findall(condition))
        unknown = [n for n in asked if self.variables.get(n, [f"${n}"]) == [f"${n}"]]
        words = [f"${n} of line {self.lost[n]}" if n in self.lost else f"${n}" for n in unknown]
        asks = f", which asks for {' and '.join(words)}," if words else ""
        fix = "give the arguments on one command line, or take it out"
        settings = " ".join(f"--set {name}=VALUE" for name in unknown if not name.isdigit())
        return Problem(
            where=self.where,
            rule=f"line {number}: {what}{asks} whose arguments in line {at} only a run of the "
            "script can tell",
            fix=f"{settings}, or {fix}" if settings else fix,
        )

    def _forget(self, line: str) -> None:
        """Take what a line sets for unknown: whatever needs its value complains."""
        read = (word for part in _READS.findall(line) for word in part.split())
        unset = (name for part in _UNSETS.findall(line) for name in part.split())
        for name in (*_SETS.findall(line), *filter(str.isidentifier, read), *unset):
            if name not in self.given:
                self.variables[name] = [f"${name}"]
                self.lost[name] = self.number

    def _if(self, lines: list[tuple[int, str]]) -> None:
        for number, condition, body in _branches(lines):
            taken = condition == "" or holds(condition, self.variables)
            if taken is None:
                self._left_out(number, lines, "an if", condition)
                return
            if taken:
                self.block(body)
                return

    def _statement(self, line: str) -> None:
        if _HEREDOC.search(line.split("\n", maxsplit=1)[0]):
            self._heredoc(line)
            return
        found = _ASSIGNMENT.fullmatch(line)
        if found and (found[3].startswith("(") or len(split_words(found[3])) <= 1):
            self._assign(found[1], found[2], found[3].strip())
            return
        gone = _UNSETS.fullmatch(line)
        if gone:
            for name in gone[1].split():
                if name not in self.given:
                    self.variables.pop(name, None)
            return
        words = expand(split_words(line), self.variables)
        command = _command(words)
        if command is not None:
            self.commands.append(command)
        else:
            self._forget(line)

    def _assign(self, name: str, how: str, value: str) -> None:
        if value.startswith("(") and value.endswith(")"):
            words = [
                part
                for word in expand(split_words(value[1:-1].strip()), self.variables)
                for part in (word.split() if word.startswith("--") else [word])
            ]
        elif "$(" in value.replace("$((", "") or "`" in value:
            self._forget(f"{name}=")
            return
        else:
            words = [" ".join(expand(split_words(value), self.variables))]
        before = self.variables.get(name, []) if how == "+=" else []
        if how == "+=" and not value.startswith("("):
            words = ["".join([*before, *words])]
            before = []
        if name not in self.given:
            self.variables[name] = [*before, *words]
            self.lost.pop(name, None)
        elif [*before, *words] != self.variables[name]:
            said = f"{name}={' '.join([*before, *words])} (line {self.number})"
            self.notes.append(overridden("--set", f"{name}={self.given[name]}", self.where, said))

    def _heredoc(self, line: str) -> None:
        head, _, text = line.partition("\n")
        target = _TARGET.search(_HEREDOC.sub("", head))
        if target is not None:
            path = "".join(expand([target[1]], self.variables))
            self.written[path] = substitute(text, self.variables)


def _end(lines: list[tuple[int, str]], start: int, opens: str, closes: str) -> int:
    """Return the place behind the statement that closes a block."""
    depth = 0
    for place in range(start, len(lines)):
        words = lines[place][1].split()
        depth += words[0] == opens or (opens == "{" and lines[place][1].rstrip().endswith("{"))
        depth -= words[0] == closes
        if depth == 0:
            return place + 1
    return len(lines)


def _branches(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str, list[tuple[int, str]]]]:
    """Yield line, condition (empty: else) and statements of each branch of an `if`."""
    depth, number, condition, body = 0, lines[0][0], "", list[tuple[int, str]]()
    for at, line in lines:
        word, _, rest = line.strip().partition(" ")
        depth += word == "if"
        if depth == 1 and word in ("if", "elif", "else", "fi"):
            if word != "if":
                yield number, condition, body
            number, condition, body = at, rest if word in ("if", "elif") else "", []
        else:
            body.append((at, line))
        depth -= word == "fi"


def _command(words: list[str]) -> Command | None:
    """Return the Python program that the words start, one given in quotes too."""
    flat: list[str] = []
    for word in words:
        flat += _inner(word) if " " in word and (".py" in word or " -m " in word) else [word]
    for place, word in enumerate(flat):
        if word == "-m" and place + 1 < len(flat) and not flat[place + 1].startswith("torch.dist"):
            return Command(
                launcher=tuple(flat[:place]),
                program=flat[place + 1],
                arguments=tuple(flat[place + 2 :]),
            )
        if _MODULE.fullmatch(word):
            return Command(
                launcher=tuple(flat[:place]), program=word, arguments=tuple(flat[place + 1 :])
            )
    return None


def _inner(word: str) -> list[str]:
    try:
        return shlex.split(word)
    except ValueError:
        return word.split()
