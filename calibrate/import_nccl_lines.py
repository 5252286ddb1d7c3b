"""Lines of a benchmark log without what launchers, loggers and terminals put around them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_LABELS = (
    re.compile(r"\[(?P<label>[^\[\]\s]*\d)\]<std(?:out|err|diag)>:?\s?"),
    re.compile(r"\[(?P<label>\d{1,6})\]:?\s(?!\s*[\d.]+\s*/)"),
    re.compile(r"\[(?P<label>(?:pod|rank|host|node)[^\[\]\s]*)\]:?\s", re.I),
    re.compile(r"(?P<label>(?:rank\s?)?\d{1,6}):(?=\s|$|#)\s?", re.I),
    re.compile(r"(?P<label>[A-Za-z][\w.-]*\d[\w.-]*):(?=\s)\s"),
    re.compile(r"(?P<label>[\w.-]+)\s+\|\s"),
)
"""Of mpirun --tag-output, Intel MPI -l, kubectl --prefix, srun --label, pdsh, docker compose."""
_DATE = r"\d{4}[-/.]\d\d[-/.]\d\d"
_TIME = r"\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?:\s?(?:Z|UTC|[+-]\d\d:?\d\d))?"
_STAMPS = (
    re.compile(rf"\[?{_DATE}(?:[T _]{_TIME})?\]?:?(?:\s|$)"),
    re.compile(rf"\[?{_TIME}\]?:?(?:\s|$)"),
    re.compile(
        rf"[A-Z][a-z]{{2}}\s+\d{{1,2}}\s{_TIME}\s(?:[\w.-]+\s)?(?:[\w./-]+(?:\[\d+\])?:\s)?"
    ),
    re.compile(r"\[\s*\d+\.\d+\]\s"),
    re.compile(r"(?:INFO|DEBUG|NOTICE)[:\s]\s*(?=[#\s\d])"),
    re.compile(r">\s?"),
    re.compile(r"(?:stdout|stderr)\s?(?:[FP]\s|:\s?|\|\s?)"),
)
"""Dates, times, syslog, dmesg, logging levels, quoted mail, container logs."""
_MOST = 8
"""Nested prefixes that are taken off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a log."""

    number: int
    """From 1."""
    label: str
    """Of the process that wrote it; empty where lines have no labels."""
    text: str


def clean_lines(text: str) -> Iterator[Line]:
    r"""Yield the lines of a log without colours, time stamps and labels.

    >>> [line.text for line in clean_lines("[1,0]<stdout>:# size\n12:30:01 3:   8  2 float")]
    ['# size', '  8  2 float']
    """
    for number, raw in enumerate(text.split("\n"), start=1):
        plain = _ESCAPES.sub("", raw).replace("\t", "    ").rstrip()
        label, rest = _unwrapped(plain)
        yield Line(number=number, label=label, text=rest)


def _unwrapped(text: str) -> tuple[str, str]:
    label = ""
    for _ in range(_MOST):
        bare = text.lstrip()
        if not bare or bare[0] == "#":
            return label, text
        match = next((m for stamp in _STAMPS if (m := stamp.match(bare))), None)
        if match is None and not label:
            match = next((m for each in _LABELS if (m := each.match(bare))), None)
            label = match["label"] if match else ""
        if match is None:
            return label, text
        text = bare[match.end() :]
    return label, text
